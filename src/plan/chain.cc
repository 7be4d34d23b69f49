#include "plan/chain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>

#include "base/error.h"

namespace sinew::transforms {
namespace {

/// What an error calls a chain: its checkpoint tensors, or what its numbers are.
std::string tensors_of(const std::vector<std::string>& sources, const std::string& name) {
  constexpr std::size_t kShown = 3;
  if (sources.empty()) return name;
  const std::size_t shown = std::min(sources.size(), kShown);
  std::string text = fmt::format("{}", fmt::join(sources.begin(), sources.begin() + shown, " + "));
  if (sources.size() > shown) text += fmt::format(" + {} more", sources.size() - shown);
  return text;
}

template <typename Fn>
Tensor with_context(const std::string& tensors, const std::string& step, Fn&& fn) {
  try {
    return fn();
  } catch (const Error& error) {
    throw error.prefixed(fmt::format("{}: {}: ", tensors, step));
  }
}

std::string joined(const std::string& first, const std::string& then) {
  return first.empty() ? then : fmt::format("{}, {}", first, then);
}

}  // namespace

Chain operator|(Chain chain, Step step) {
  std::vector<std::string> sources = chain.sources();
  std::string name = joined(chain.name(), step.name);
  const std::string tensors = tensors_of(sources, chain.name());
  return {std::move(sources), std::move(name),
          [chain = std::move(chain), step = std::move(step), tensors](const Sources& from) {
            Tensor before = chain(from);
            return with_context(tensors, step.name, [&] { return step.apply(std::move(before)); });
          }};
}

Chain combined(std::vector<Chain> parts, const std::string& step, std::function<Tensor(Operands)> apply) {
  std::vector<std::string> sources;
  std::vector<std::string> names;
  const auto add_once = [](std::vector<std::string>& list, const std::string& text) {
    if (!text.empty() && std::ranges::find(list, text) == list.end()) list.push_back(text);
  };
  for (const Chain& part : parts) {
    for (const std::string& source : part.sources()) add_once(sources, source);
    add_once(names, part.name());
  }
  const std::string before = fmt::format("{}", fmt::join(names, " / "));
  const std::string tensors = tensors_of(sources, before);
  return {std::move(sources), joined(before, step),
          [parts = std::move(parts), tensors, step, apply = std::move(apply)](const Sources& from) {
            Operands operands;
            for (const Chain& part : parts) operands.push_back(part(from));
            return with_context(tensors, step, [&] { return apply(std::move(operands)); });
          }};
}

Chain source(const std::string& name) {
  return {{name}, "", [name](const Sources& sources) { return sources.f64(name); }};
}

Chain source_part(const std::string& name, const std::string& step,
                  std::function<Tensor(const TensorView&)> read) {
  return {{name}, step, [name, step, read = std::move(read)](const Sources& sources) {
            const TensorView& view = sources.get(name);
            return with_context(name, step, [&] { return read(view); });
          }};
}

Chain constant(const std::string& name, const Shape& shape, std::vector<double> values) {
  assert(static_cast<std::int64_t>(values.size()) == shape.count());
  return {{}, name, [shape, values = std::move(values)](const Sources&) {
            return Tensor::of<double>(shape, values);
          }};
}

}  // namespace sinew::transforms
