#include "program/weight_source.h"

#include <cassert>
#include <cstring>

namespace sinew {

ResidentBytes WeightSource::resident(const std::string& name, DType dtype, const Shape& shape,
                                     const WeightForm& form, const MakeForm& make) {
  const auto buffer = std::make_shared<AlignedBuffer>(form.bytes);
  make(load(name, dtype, shape), {buffer->data(), form.bytes});
  release(name);
  return {buffer, buffer->data()};
}

WeightForm row_major_form(DType dtype, const Shape& shape) {
  return {std::string(to_string(dtype)), "row major", TensorView(dtype, shape, nullptr).bytes()};
}

void copy_row_major(const TensorView& weight, std::span<std::byte> out) {
  assert(weight.contiguous() && weight.bytes() == out.size());
  std::memcpy(out.data(), weight.data, out.size());
}

}  // namespace sinew
