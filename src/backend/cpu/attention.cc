#include "program/attention.h"

#include "backend/cpu/kernel.h"

namespace sinew::cpu {
namespace {

/// One task a head.
template <typename T>
class AttentionKernel final : public Kernel {
 public:
  using Run = void (*)(const HeadArguments<T>&);
  AttentionKernel(const Attention& op, Compiler& compiler, Run run) : heads_(op.heads), run_(run) {
    const auto operand = [&](const HeadColumns& columns, const T*& data, std::int64_t& stride) {
      stride = compiler.value(columns.value).shape[1];
      data = compiler.as<T>(columns.value) + columns.column;
    };
    operand(op.q, first_.q, first_.q_stride);
    operand(op.k, first_.k, first_.k_stride);
    operand(op.v, first_.v, first_.v_stride);
    first_.out = compiler.as<T>(op.out);
    first_.out_stride = compiler.value(op.out).shape[1];
    first_.queries = compiler.value(op.q.value).shape[0];
    first_.keys = compiler.value(op.k.value).shape[0];
    first_.dim = op.head_dim;
    first_.scale = static_cast<float>(op.scale);
    const auto floats = static_cast<std::size_t>(attention_scratch(first_.keys, first_.dim));
    compiler.want_scratch({.per_thread = floats * sizeof(float)},
                          [this](const Scratch& scratch) { scratch_ = scratch; });
  }

  void run(ThreadPool& pool) noexcept override {
    pool.parallel_for(static_cast<int>(heads_), [this](int head, int worker) {
      HeadArguments<T> arguments = first_;
      arguments.q += head * first_.dim;
      arguments.k += head * first_.dim;
      arguments.v += head * first_.dim;
      arguments.out += head * first_.dim;
      arguments.scratch = reinterpret_cast<float*>(scratch_.of_thread(worker));
      run_(arguments);
    });
  }

 private:
  HeadArguments<T> first_;
  std::int64_t heads_;
  Run run_;
  Scratch scratch_;
};

std::unique_ptr<Kernel> make_attention(const Op& base, Compiler& compiler) {
  const auto& op = dynamic_cast<const Attention&>(base);
  if (compiler.value(op.out).dtype == DType::kBF16) {
    return std::make_unique<AttentionKernel<BF16>>(op, compiler, compiler.vectors().attention_bf16);
  }
  return std::make_unique<AttentionKernel<float>>(op, compiler, compiler.vectors().attention_f32);
}

}  // namespace

void register_attention(Forms& forms) { forms.add<Attention>(make_attention); }

}  // namespace sinew::cpu
