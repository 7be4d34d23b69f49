#include "program/linear.h"

#include "backend/cpu/kernel.h"

namespace sinew::cpu {
namespace {

class LinearKernel final : public Kernel {
 public:
  LinearKernel(const GemmShape& shape, const GemmOperands& operands, Compiler& compiler)
      : gemm_(make_gemm(shape, operands, compiler.threads())) {
    compiler.want_scratch(gemm_->scratch(), [this](const Scratch& scratch) { gemm_->bind_scratch(scratch); });
  }

  void run(ThreadPool& pool) noexcept override { gemm_->run(pool); }

 private:
  std::unique_ptr<Gemm> gemm_;
};

std::unique_ptr<Kernel> make_linear(const Op& base, Compiler& compiler) {
  const auto& op = dynamic_cast<const Linear&>(base);
  const Value& x = compiler.value(op.x);
  GemmShape shape;
  shape.m = x.shape[0];
  shape.k = x.shape[1];
  shape.n = compiler.value(op.weight).shape[0];
  shape.storage = compiler.value(op.weight).storage;
  shape.operand = x.dtype;
  shape.out = compiler.value(op.out).dtype;
  shape.bias = static_cast<bool>(op.bias);
  shape.gelu = op.activation == Activation::kGelu;
  shape.residual = static_cast<bool>(op.residual);
  shape.isa = compiler.isa();
  GemmOperands operands;
  operands.x = compiler.data(op.x);
  operands.weight = compiler.packed(op.weight, shape);
  operands.out = compiler.data(op.out);
  if (op.bias) operands.bias = compiler.as<float>(op.bias);
  if (op.residual) operands.residual = compiler.as<float>(op.residual);
  return std::make_unique<LinearKernel>(shape, operands, compiler);
}

}  // namespace

void register_linear(Forms& forms) { forms.add<Linear>(make_linear); }

}  // namespace sinew::cpu
