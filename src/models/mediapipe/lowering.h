// The walk over a TFLite graph that makes a Program and a Plan of it; graph.h is its face.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "models/mediapipe/graph.h"
#include "program/convolution.h"
#include "program/elementwise.h"
#include "program/layout.h"
#include "program/linear.h"

namespace sinew::mediapipe {

/// One operator after another, in file order. A convolution whose result only an ADD or PRELU reads waits in
/// `waiting_` for it, so that the fused op stands where its last part stood and its residual has a value.
class Lowering {
 public:
  /// Throws Error (kUnsupported) for a policy other than f32 and f64.
  Lowering(std::shared_ptr<const TfliteFile> file, Policy policy);
  Graph run();

 private:
  using AnyConvolution = std::variant<Convolution, DepthwiseConvolution>;
  struct Waiting {
    AnyConvolution op;
    std::size_t since = 0;  // operator number
  };
  struct Form {
    TfliteCode code;
    std::size_t fewest, most;  // inputs
    void (Lowering::*lower)(const TfliteOperator&);
  };
  static const std::array<Form, 13> kForms;

  // graph.cc
  void declare_inputs();
  void declare_outputs();
  void count_readers();
  void lower_operator(const TfliteOperator& op);
  void check_outputs_written() const;
  const TfliteTensor& tensor(int number) const;
  std::string describe(int number) const;
  int operand(const TfliteOperator& op, std::size_t index) const;
  Shape computed_shape(int number) const;
  Shape picture_shape(int number) const;
  std::string unique(int number, std::string_view suffix = {});
  void claim(int number);
  ValueId declare(int number);
  ValueId scratch(int number, std::string_view suffix, const Shape& shape);
  ValueId read(int number);
  ValueId read_as(int number, const Shape& shape);
  int constant(const TfliteOperator& op, std::size_t index) const;
  ValueId weight(const TfliteOperator& op, std::size_t index, const Shape& shape);
  std::vector<std::int64_t> integers(const TfliteOperator& op, std::size_t index) const;

  // lower_convolution.cc
  void convolution(const TfliteOperator& op);
  void depthwise(const TfliteOperator& op);
  void max_pool(const TfliteOperator& op);
  void add(const TfliteOperator& op);
  void prelu(const TfliteOperator& op);
  ValueId bias(const TfliteOperator& op, std::int64_t channels);
  bool may_wait(int number, const AnyConvolution& op) const;
  void wait_or_emit(int number, AnyConvolution op);
  void emit_convolution(int number, AnyConvolution op);
  bool fusible(int number, int out, bool with_residual) const;
  AnyConvolution take(int number);

  // lower_shape.cc
  void pad(const TfliteOperator& op);
  void resize_bilinear(const TfliteOperator& op);
  void reshape(const TfliteOperator& op);
  void concatenation(const TfliteOperator& op);
  void dequantize(const TfliteOperator& op);
  void mean(const TfliteOperator& op);
  void fully_connected(const TfliteOperator& op);
  void logistic(const TfliteOperator& op);

  /// Appends `op`, whose result has the shape `natural`, and what makes tensor `number` of it.
  template <typename T>
  void emit(T op, int number, const Shape& natural, Rectifier rectifier = Rectifier::kNone);

  std::shared_ptr<const TfliteFile> file_;
  DType dtype_;
  ProgramBuilder builder_;
  Plan plan_;
  std::size_t at_ = 0;                  // number of the operator at hand
  std::set<std::string> names_;         // of values, taken
  std::vector<std::string> end_names_;  // by tensor: "output0"; empty elsewhere
  std::vector<ValueId> values_;         // by tensor; absent: none yet, constant, or inside a fused op
  std::vector<bool> claimed_;           // by tensor: constant, input or result of an operator
  std::vector<int> sources_;            // by tensor: the constant that it is or widens, or -1
  std::vector<int> readers_;            // by tensor: operands that name it
  std::vector<int> reader_;             // by tensor: the last operator that does
  std::map<int, std::string> weights_;  // plan tensor by constant
  std::map<int, Waiting> waiting_;      // by tensor
};

/// Throws Error (kUnsupported) for an activation that no op ends with.
Rectifier rectifier_of(TfliteActivation activation);

template <typename T>
void Lowering::emit(T op, int number, const Shape& natural, Rectifier rectifier) {
  const bool rectified = rectifier != Rectifier::kNone;
  const bool reshaped = !(computed_shape(number) == natural);
  const ValueId last = declare(number);
  ValueId value = rectified || reshaped ? scratch(number, "/raw", natural) : last;
  op.out = value;
  builder_.add(std::move(op));
  if (rectified) {
    Rectify next;
    next.x = value;
    next.rectifier = rectifier;
    next.out = value = reshaped ? scratch(number, "/rectified", natural) : last;
    builder_.add(std::move(next));
  }
  if (!reshaped) return;
  Reshape next;
  next.x = value;
  next.out = last;
  builder_.add(std::move(next));
}

}  // namespace sinew::mediapipe
