// What the CPU forms of ops are: kernels bound to memory at compile time.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/vector_kernels.h"
#include "base/thread_pool.h"

namespace sinew::cpu {

/// One op, ready to run: operands, weights and scratch are addresses already.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(ThreadPool& pool) noexcept = 0;
};

/// What a kernel may ask for while it is made.
class Compiler {
 public:
  virtual ~Compiler() = default;
  virtual const Program& program() const = 0;
  virtual const VectorKernels& vectors() const = 0;
  virtual int threads() const = 0;
  /// Start of a value: its place in the arena, or the resident copy of a small weight (bias, norm, constant).
  virtual std::byte* data(ValueId id) = 0;
  /// The weight matrix packed for products; the same pack for every product that can use it.
  virtual std::shared_ptr<const PackedMatrix> packed(ValueId weight, const GemmShape& shape) = 0;
  /// An f32 weight as `arrange` lays it out, resident instead of the weight as stored; one copy for all who
  /// name the same weight and layout.
  virtual std::shared_ptr<const Tensor> arranged(ValueId weight, std::string_view layout,
                                                 const std::function<Tensor(const TensorView&)>& arrange) = 0;
  /// Memory that is the kernel's own while it runs, `bytes` for each thread; shared with other kernels. Once
  /// all kernels are made, `use` is called with the address and the stride: thread t's part lies at address +
  /// t * stride.
  virtual void want_scratch(std::size_t bytes_per_thread,
                            std::function<void(std::byte*, std::size_t)> use) = 0;

  const Value& value(ValueId id) const { return program().value(id); }
  template <typename T>
  T* as(ValueId id) {
    assert(DTypeOf<T>::value == value(id).dtype);
    return reinterpret_cast<T*>(data(id));
  }
};

using Form = std::unique_ptr<Kernel> (*)(const Op&, Compiler&);
using Forms = OpTable<Form>;

/// One function per family of ops.
void register_linear(Forms& forms);
void register_norm(Forms& forms);
void register_attention(Forms& forms);
void register_patch(Forms& forms);
void register_elementwise(Forms& forms);
void register_columns(Forms& forms);
void register_rotation(Forms& forms);
void register_convolution(Forms& forms);
void register_layout(Forms& forms);

}  // namespace sinew::cpu
