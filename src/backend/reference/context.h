// What the reference forms of ops work with.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/thread_pool.h"
#include "program/rectifier.h"

namespace sinew::reference {

/// Reads and writes values of a running program as doubles.
class Context {
 public:
  virtual ~Context() = default;
  virtual const Program& program() const = 0;
  virtual TensorView view(ValueId id) const = 0;
  virtual ThreadPool& pool() = 0;
  /// All elements, widened.
  std::vector<double> load(ValueId id) const;
  /// All elements, rounded to the value's dtype.
  void store(ValueId id, std::span<const double> values);

 protected:
  virtual std::byte* memory_of(ValueId id) = 0;
};

using Form = void (*)(const Op&, Context&);
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

/// x/2 (1 + erf(x/sqrt 2))
double gelu(double x);
/// See Rectifier; `slope` is that of x's channel, for kPRelu.
double rectify(Rectifier rectifier, double x, double slope);
/// sum_i a[i] b[i]
double dot(const double* a, const double* b, std::int64_t n);

}  // namespace sinew::reference
