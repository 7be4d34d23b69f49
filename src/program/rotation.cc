#include "program/rotation.h"

#include <algorithm>
#include <cmath>

#include "program/rules.h"

namespace sinew {

void Rotation6dToMatrix::check(const Program& program) const {
  const Rules rules(program, name());
  rules.rank(x, 2);
  rules.dtype(x, {DType::kF32, DType::kF64});
  rules.same_dtype(x, out);
  const Shape& shape = rules.value(x).shape;
  rules.require(shape[0] == 1 && shape[1] % 6 == 0, x, "must be [1, 6 * joints]");
  rules.shape(out, {1, shape[1] / 6 * 9});
}

Cost Rotation6dToMatrix::cost(const Program& program) const {
  return {40.0 * static_cast<double>(program.value(x).shape[1]) / 6};
}

template <typename T>
void rotation_6d_to_matrix(const T* six, T* matrix) {
  const auto normalise = [](const T* v, T* out) {
    const T length = std::max(std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]), static_cast<T>(1e-12));
    for (int i = 0; i < 3; ++i) out[i] = v[i] / length;
  };
  T b1[3];
  T b2[3];
  T rest[3];
  normalise(six, b1);
  const T along = b1[0] * six[3] + b1[1] * six[4] + b1[2] * six[5];
  for (int i = 0; i < 3; ++i) rest[i] = six[3 + i] - along * b1[i];
  normalise(rest, b2);
  const T b3[3] = {b1[1] * b2[2] - b1[2] * b2[1], b1[2] * b2[0] - b1[0] * b2[2],
                   b1[0] * b2[1] - b1[1] * b2[0]};
  for (int row = 0; row < 3; ++row) {
    matrix[3 * row] = b1[row];
    matrix[3 * row + 1] = b2[row];
    matrix[3 * row + 2] = b3[row];
  }
}

template void rotation_6d_to_matrix<float>(const float*, float*);
template void rotation_6d_to_matrix<double>(const double*, double*);

}  // namespace sinew
