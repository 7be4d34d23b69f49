#include "backend/reference/reference_backend.h"

#include <fmt/format.h>

#include <utility>

#include "backend/reference/context.h"

namespace sinew {
namespace reference {

std::vector<double> Context::load(ValueId id) const {
  const TensorView source = view(id);
  std::vector<double> values(static_cast<std::size_t>(source.shape.count()));
  convert_into(source, DType::kF64, values.data());
  return values;
}

void Context::store(ValueId id, std::span<const double> values) {
  const Value& value = program().value(id);
  assert(static_cast<std::int64_t>(values.size()) == value.shape.count());
  convert_into({DType::kF64, value.shape, values.data()}, value.dtype, memory_of(id));
}

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

class ReferenceSession final : public Session, private Context {
 public:
  ReferenceSession(Program compiled, WeightSource& weights, std::shared_ptr<ThreadPool> pool)
      : Session(std::move(compiled)), pool_(std::move(pool)), weights_(Session::program().values().size()) {
    for (const auto& op : Session::program().ops())
      steps_.push_back({op.get(), forms().find(*op, "reference")});
    for (const ValueId id : Session::program().with_role(Role::kWeight)) {
      const Value& value = Session::program().value(id);
      const WeightForm form = row_major_form(value.dtype, value.shape);
      weights_[static_cast<std::size_t>(id.index)] =
          weights.resident(value.name, value.dtype, value.shape, form, copy_row_major);
      weight_bytes_ += form.bytes;
    }
  }

  void run() noexcept override {
    for (const auto& [op, form] : steps_) form(*op, *this);
  }
  std::size_t weight_bytes() const override { return weight_bytes_; }

 private:
  const Program& program() const override { return Session::program(); }
  ThreadPool& pool() override { return *pool_; }
  std::byte* memory_of(ValueId id) override { return memory(id); }
  TensorView view(ValueId id) const override {
    const Value& value = program().value(id);
    if (value.role == Role::kWeight)
      return {value.dtype, value.shape, weights_[static_cast<std::size_t>(id.index)].get()};
    return {value.dtype, value.shape, const_cast<ReferenceSession*>(this)->memory(id)};
  }

  std::shared_ptr<ThreadPool> pool_;
  std::vector<ResidentBytes> weights_;  // by value index
  std::size_t weight_bytes_ = 0;
  std::vector<std::pair<const Op*, Form>> steps_;
};

class ReferenceBackend final : public Backend {
 public:
  explicit ReferenceBackend(int threads) : pool_(std::make_shared<ThreadPool>(threads)) {}
  std::string_view name() const override { return "reference"; }
  DType preferred_operand() const override { return DType::kF64; }
  std::string describe() const override {
    return fmt::format("reference: double precision, {} threads", pool_->size());
  }
  std::unique_ptr<Session> compile(Program program, WeightSource& weights) override {
    return std::make_unique<ReferenceSession>(std::move(program), weights, pool_);
  }

 private:
  std::shared_ptr<ThreadPool> pool_;  // sessions hold it too, and may outlive the backend
};

}  // namespace
}  // namespace reference

std::unique_ptr<Backend> make_reference_backend(int threads) {
  return std::make_unique<reference::ReferenceBackend>(threads);
}

}  // namespace sinew
