#include "program/rectifier.h"

namespace sinew {

std::string_view to_string(Rectifier rectifier) {
  switch (rectifier) {
    case Rectifier::kNone:
      return "none";
    case Rectifier::kRelu:
      return "relu";
    case Rectifier::kRelu6:
      return "relu6";
    case Rectifier::kPRelu:
      return "prelu";
  }
  return "unknown";
}

}  // namespace sinew
