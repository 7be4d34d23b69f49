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
#include "program/weight_source.h"

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
  /// The highest instruction set to be used.
  virtual Isa isa() const = 0;
  /// Start of a value: its place in the arena, or the resident copy of a small weight (bias, norm, constant).
  virtual std::byte* data(ValueId id) = 0;
  /// The weight in this form, read-only, on a 64-byte boundary, as long as the session lives; one copy for
  /// all who ask for the same.
  virtual const std::byte* resident(ValueId weight, const WeightForm& form,
                                    const WeightSource::MakeForm& make) = 0;
  /// Memory that is the kernel's own while it runs, shared with other kernels. Once all kernels are made,
  /// `use` is called with the addresses.
  virtual void want_scratch(const ScratchSize& size, std::function<void(const Scratch&)> use) = 0;

  /// The weight matrix, its first axis the rows, packed for products of this shape.
  const std::byte* packed(ValueId weight, const GemmShape& shape);
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
