#include "backend/cpu/cpu_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "backend/cpu/kernel.h"
#include "base/checked.h"

namespace sinew {
namespace cpu {
namespace {

/// Bumped when a layout of the same name puts other bytes down.
constexpr std::string_view kLayoutVersion = "1";

const Forms& forms() {
  static const Forms table = [] {
    Forms made;
    register_linear(made);
    register_norm(made);
    register_attention(made);
    register_patch(made);
    register_elementwise(made);
    register_columns(made);
    register_rotation(made);
    register_convolution(made);
    register_layout(made);
    return made;
  }();
  return table;
}

void refuse_double(const Program& program) {
  for (const Value& value : program.values()) {
    if (value.dtype == DType::kF64) {
      throw Error(ErrorCode::kUnsupported, fmt::format("backend cpu has no f64 ({} is one)", value.name),
                  "use --policy f32 or bf16, or --backend reference");
    }
  }
}

class CpuSession final : public Session, private Compiler {
 public:
  CpuSession(Program compiled, WeightSource& weights, std::shared_ptr<ThreadPool> pool, Isa isa)
      : Session(std::move(compiled)),
        pool_(std::move(pool)),
        isa_(isa),
        vectors_(vector_kernels(isa)),
        weights_(&weights) {
    for (const auto& op : Session::program().ops()) kernels_.push_back(forms().find(*op, "cpu")(*op, *this));
    hand_out_scratch();
    weights_ = nullptr;
  }

  void run() noexcept override {
    for (const auto& kernel : kernels_) kernel->run(*pool_);
  }
  std::size_t weight_bytes() const override { return weight_bytes_; }

 private:
  const Program& program() const override { return Session::program(); }
  const VectorKernels& vectors() const override { return vectors_; }
  int threads() const override { return pool_->size(); }
  Isa isa() const override { return isa_; }

  std::byte* data(ValueId id) override {
    const Value& value = program().value(id);
    if (value.role != Role::kWeight) return memory(id);
    // Kernels read weights only, whatever the pointer's type.
    return const_cast<std::byte*>(
        resident(id, row_major_form(value.dtype, value.shape), WeightSource::MakeForm(copy_row_major)));
  }

  const std::byte* resident(ValueId id, const WeightForm& form, const WeightSource::MakeForm& make) override {
    const auto [at, inserted] = resident_.try_emplace({id.index, form.dtype, form.layout});
    if (inserted) {
      const Value& value = program().value(id);
      at->second = weights_->resident(value.name, value.dtype, value.shape, form, make);
      weight_bytes_ += form.bytes;
    }
    return at->second.get();
  }

  void want_scratch(const ScratchSize& size, std::function<void(const Scratch&)> use) override {
    constexpr std::size_t step = AlignedBuffer::kAlignment;
    scratch_size_.shared = std::max(scratch_size_.shared, round_up(size.shared, step));
    scratch_size_.per_thread = std::max(scratch_size_.per_thread, round_up(size.per_thread, step));
    scratch_users_.push_back(std::move(use));
  }

  void hand_out_scratch() {
    const auto threads = static_cast<std::size_t>(pool_->size());
    scratch_ = AlignedBuffer(scratch_size_.shared + scratch_size_.per_thread * threads);
    const Scratch scratch{scratch_.data(), scratch_.data() + scratch_size_.shared, scratch_size_.per_thread};
    for (const auto& use : scratch_users_) use(scratch);
    scratch_users_.clear();
  }

  using Key = std::tuple<std::int32_t, std::string, std::string>;  // value, dtype and layout of the form

  std::shared_ptr<ThreadPool> pool_;
  Isa isa_;
  const VectorKernels& vectors_;
  WeightSource* weights_;
  std::map<Key, ResidentBytes> resident_;
  std::size_t weight_bytes_ = 0;
  ScratchSize scratch_size_;
  std::vector<std::function<void(const Scratch&)>> scratch_users_;
  AlignedBuffer scratch_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(const MachineOptions& options, Isa isa)
      : pool_(std::make_shared<ThreadPool>(options.threads == 0 ? available_cpus() : options.threads,
                                           options.pool)),
        isa_(isa) {}
  std::string_view name() const override { return "cpu"; }
  std::string describe() const override {
    return fmt::format("cpu: {}, {} thread{}, {}", to_string(isa_), pool_->size(),
                       pool_->size() == 1 ? "" : "s", gemm_maker(isa_));
  }
  DType preferred_operand() const override {
    const bool bf16 = bf16_doubles_products(isa_) && has_product(DType::kBF16, WeightStorage::kPlain, isa_);
    return bf16 ? DType::kBF16 : DType::kF32;
  }
  std::map<std::string, std::string> weight_identity() const override {
    return {{"backend", "cpu"},
            {"isa", std::string(to_string(isa_))},
            {"library", gemm_library()},
            {"layouts", std::string(kLayoutVersion)}};
  }
  std::unique_ptr<Session> compile(Program program, WeightSource& weights) override {
    refuse_double(program);
    return std::make_unique<CpuSession>(std::move(program), weights, pool_, isa_);
  }

 private:
  std::shared_ptr<ThreadPool> pool_;  // sessions hold it too, and may outlive the backend
  Isa isa_;
};

}  // namespace

const std::byte* Compiler::packed(ValueId weight, const GemmShape& shape) {
  return resident(weight, packed_form(shape), [shape](const TensorView& stored, std::span<std::byte> out) {
    pack_matrix(reshaped(stored, {shape.n, shape.k}), shape, out);
  });
}

}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend(const MachineOptions& options) {
  const Isa isa = options.isa.value_or(best_isa());
  if (isa > best_isa()) {
    throw fail(ErrorCode::kUnsupported, "this processor has no {}; its best is {}", to_string(isa),
               to_string(best_isa()));
  }
  cpu::limit_library(isa);
  return std::make_unique<cpu::CpuBackend>(options, isa);
}

bool cpu_has_products(DType operand, WeightStorage storage) { return cpu::has_product(operand, storage); }

}  // namespace sinew
