#include "program/rotation.h"

#include "backend/reference/context.h"

namespace sinew::reference {
namespace {

void run_rotation(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const Rotation6dToMatrix&>(base);
  const std::vector<double> x = context.load(op.x);
  std::vector<double> out(x.size() / 6 * 9);
  for (std::size_t joint = 0; joint < x.size() / 6; ++joint)
    rotation_6d_to_matrix(&x[6 * joint], &out[9 * joint]);
  context.store(op.out, out);
}

}  // namespace

void register_rotation(Forms& forms) { forms.add<Rotation6dToMatrix>(run_rotation); }

}  // namespace sinew::reference
