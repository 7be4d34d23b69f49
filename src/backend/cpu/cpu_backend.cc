#include "backend/cpu/cpu_backend.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "backend/cpu/kernel.h"
#include "base/checked.h"

namespace sinew {
namespace cpu {
namespace {

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
  CpuSession(Program compiled, WeightSource& weights, std::shared_ptr<ThreadPool> pool,
             const VectorKernels& vectors)
      : Session(std::move(compiled)), pool_(std::move(pool)), vectors_(vectors), weights_(&weights) {
    for (const auto& op : Session::program().ops()) kernels_.push_back(forms().find(*op, "cpu")(*op, *this));
    for (const auto& [name, matrices] : packed_) {
      for (const auto& matrix : matrices) weight_bytes_ += matrix->bytes();
    }
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

  std::byte* data(ValueId id) override {
    const Value& value = program().value(id);
    if (value.role != Role::kWeight) return memory(id);
    auto [at, inserted] = small_.try_emplace(id.index);
    if (inserted) {
      at->second = convert(weights_->load(value.name, value.dtype, value.shape), value.dtype);
      weights_->release(value.name);
      weight_bytes_ += at->second.view().bytes();
    }
    return at->second.data();
  }

  std::shared_ptr<const PackedMatrix> packed(ValueId id, const GemmShape& shape) override {
    auto& candidates = packed_[id.index];
    for (const auto& candidate : candidates) {
      if (pack_serves(*candidate, shape)) return candidate;
    }
    const Value& value = program().value(id);
    const Shape matrix{value.shape[0], value.shape.count() / value.shape[0]};
    candidates.push_back(
        pack_matrix(reshaped(weights_->load(value.name, value.dtype, value.shape), matrix), shape));
    weights_->release(value.name);
    return candidates.back();
  }

  std::shared_ptr<const Tensor> arranged(ValueId id, std::string_view layout,
                                         const std::function<Tensor(const TensorView&)>& arrange) override {
    auto& copy = arranged_[{id.index, std::string(layout)}];
    if (copy == nullptr) {
      const Value& value = program().value(id);
      copy = std::make_shared<const Tensor>(arrange(weights_->load(value.name, value.dtype, value.shape)));
      weights_->release(value.name);
      weight_bytes_ += copy->view().bytes();
    }
    return copy;
  }

  void want_scratch(std::size_t bytes_per_thread, std::function<void(std::byte*, std::size_t)> use) override {
    scratch_bytes_ = std::max(scratch_bytes_, round_up(bytes_per_thread, AlignedBuffer::kAlignment));
    scratch_users_.push_back(std::move(use));
  }

  void hand_out_scratch() {
    scratch_ = AlignedBuffer(scratch_bytes_ * static_cast<std::size_t>(pool_->size()));
    for (const auto& use : scratch_users_) use(scratch_.data(), scratch_bytes_);
    scratch_users_.clear();
  }

  std::shared_ptr<ThreadPool> pool_;
  const VectorKernels& vectors_;
  WeightSource* weights_;
  std::map<std::int32_t, Tensor> small_;
  std::map<std::int32_t, std::vector<std::shared_ptr<const PackedMatrix>>> packed_;
  std::map<std::pair<std::int32_t, std::string>, std::shared_ptr<const Tensor>> arranged_;
  std::size_t weight_bytes_ = 0;
  std::size_t scratch_bytes_ = 0;
  std::vector<std::function<void(std::byte*, std::size_t)>> scratch_users_;
  AlignedBuffer scratch_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(int threads)
      : pool_(std::make_shared<ThreadPool>(threads)), vectors_(vector_kernels(best_isa())) {}
  std::string_view name() const override { return "cpu"; }
  std::string describe() const override {
    return fmt::format("cpu: {}, {} thread{}, {}", to_string(best_isa()), pool_->size(),
                       pool_->size() == 1 ? "" : "s", gemm_library());
  }
  std::unique_ptr<Session> compile(Program program, WeightSource& weights) override {
    refuse_double(program);
    return std::make_unique<CpuSession>(std::move(program), weights, pool_, vectors_);
  }

 private:
  std::shared_ptr<ThreadPool> pool_;  // sessions hold it too, and may outlive the backend
  const VectorKernels& vectors_;
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend(int threads) { return std::make_unique<cpu::CpuBackend>(threads); }

bool cpu_has_bf16_products() { return cpu::has_bf16_product(); }

bool cpu_prefers_bf16() { return bf16_doubles_products() && cpu::has_bf16_product(); }

}  // namespace sinew
