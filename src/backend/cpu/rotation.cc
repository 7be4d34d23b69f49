#include "program/rotation.h"

#include "backend/cpu/kernel.h"

namespace sinew::cpu {
namespace {

class RotationKernel final : public Kernel {
 public:
  RotationKernel(const Rotation6dToMatrix& op, Compiler& compiler)
      : x_(compiler.as<float>(op.x)),
        out_(compiler.as<float>(op.out)),
        joints_(compiler.value(op.x).shape[1] / 6) {}
  void run(ThreadPool&) noexcept override {
    for (std::int64_t joint = 0; joint < joints_; ++joint)
      rotation_6d_to_matrix(x_ + 6 * joint, out_ + 9 * joint);
  }

 private:
  const float* x_;
  float* out_;
  std::int64_t joints_;
};

std::unique_ptr<Kernel> make_rotation(const Op& base, Compiler& compiler) {
  return std::make_unique<RotationKernel>(dynamic_cast<const Rotation6dToMatrix&>(base), compiler);
}

}  // namespace

void register_rotation(Forms& forms) { forms.add<Rotation6dToMatrix>(make_rotation); }

}  // namespace sinew::cpu
