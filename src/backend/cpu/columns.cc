#include "program/columns.h"

#include <cstring>

#include "backend/cpu/kernel.h"

namespace sinew::cpu {
namespace {

/// Copies a run of columns from one row-major matrix into another.
struct ColumnCopy {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t from_stride = 0, to_stride = 0, bytes = 0;
  std::int64_t rows = 0;

  void run() const {
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto row = static_cast<std::size_t>(r);
      std::memcpy(to + row * to_stride, from + row * from_stride, bytes);
    }
  }
};

std::size_t row_bytes(const Value& value) {
  return static_cast<std::size_t>(value.shape[1]) * size_of(value.dtype);
}

class CopyColumnsKernel final : public Kernel {
 public:
  explicit CopyColumnsKernel(std::vector<ColumnCopy> copies) : copies_(std::move(copies)) {}
  void run(ThreadPool&) noexcept override {
    for (const ColumnCopy& copy : copies_) copy.run();
  }

 private:
  std::vector<ColumnCopy> copies_;
};

std::unique_ptr<Kernel> make_slice(const Op& base, Compiler& compiler) {
  const auto& op = dynamic_cast<const SliceColumns&>(base);
  const Value& x = compiler.value(op.x);
  const Value& out = compiler.value(op.out);
  ColumnCopy copy;
  copy.from = compiler.data(op.x) + static_cast<std::size_t>(op.column) * size_of(x.dtype);
  copy.to = compiler.data(op.out);
  copy.from_stride = row_bytes(x);
  copy.to_stride = copy.bytes = row_bytes(out);
  copy.rows = x.shape[0];
  return std::make_unique<CopyColumnsKernel>(std::vector{copy});
}

std::unique_ptr<Kernel> make_concat(const Op& base, Compiler& compiler) {
  const auto& op = dynamic_cast<const ConcatColumns&>(base);
  const Value& out = compiler.value(op.out);
  std::vector<ColumnCopy> copies;
  std::size_t column = 0;
  for (const ValueId part : op.parts) {
    ColumnCopy copy;
    copy.from = compiler.data(part);
    copy.to = compiler.data(op.out) + column;
    copy.from_stride = copy.bytes = row_bytes(compiler.value(part));
    copy.to_stride = row_bytes(out);
    copy.rows = out.shape[0];
    column += copy.bytes;
    copies.push_back(copy);
  }
  return std::make_unique<CopyColumnsKernel>(std::move(copies));
}

}  // namespace

void register_columns(Forms& forms) {
  forms.add<SliceColumns>(make_slice);
  forms.add<ConcatColumns>(make_concat);
}

}  // namespace sinew::cpu
