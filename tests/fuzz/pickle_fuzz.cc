// pickle::Document: the interpreter, and the walks over what it built. Any sinew::Error is fine.
#include "base/error.h"
#include "io/pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sinew::pickle::Limits limits;
  limits.max_nodes = 100'000;  // what a seed needs many times over; keeps one input fast
  try {
    const auto document = sinew::pickle::Document::parse(
        std::as_bytes(std::span(data, size)), "fuzz", [](std::string_view) { return true; }, limits);
    std::size_t nodes = 0;
    document.visit(document.root(), [&](const sinew::pickle::Value& value) {
      ++nodes;
      value.find("state_dict");
      if (value.offset >= size) __builtin_trap();
    });
    if (nodes > limits.max_nodes) __builtin_trap();
    document.require_globals(
        document.root(), [](std::string_view name) { return !sinew::pickle::is_dangerous_global(name); },
        "fuzz");
  } catch (const sinew::Error&) {
    return 0;
  }
  return 0;
}
