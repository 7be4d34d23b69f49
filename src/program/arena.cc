#include "program/arena.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"

namespace sinew {
namespace {

std::size_t padded_bytes(const Value& value) {
  const std::size_t bytes = static_cast<std::size_t>(value.shape.count()) * size_of(value.dtype);
  return round_up(bytes, ArenaPlan::kAlignment);
}

std::vector<Lifetime> lifetimes(const Program& program) {
  const int last_op = static_cast<int>(program.ops().size()) - 1;
  std::vector<Lifetime> result(program.values().size(), {last_op + 1, -1});
  for (int i = 0; i <= last_op; ++i) {
    const Op& op = *program.ops()[static_cast<std::size_t>(i)];
    for (const auto& ids : {op.inputs(), op.outputs()}) {
      for (const ValueId id : ids) {
        Lifetime& life = result[static_cast<std::size_t>(id.index)];
        life.first = std::min(life.first, i);
        life.last = std::max(life.last, i);
      }
    }
  }
  for (std::size_t v = 0; v < result.size(); ++v) {
    const Role role = program.values()[v].role;
    if (role == Role::kInput || role == Role::kOutput) result[v] = {0, last_op};
  }
  return result;
}

}  // namespace

ArenaPlan plan_arena(const Program& program) {
  const auto values = program.values();
  ArenaPlan plan;
  plan.lifetime = lifetimes(program);
  plan.offset.assign(values.size(), ArenaPlan::kNone);

  std::vector<std::size_t> order;
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (values[v].role != Role::kWeight) order.push_back(v);
  }
  // Equal sizes keep their order. (Not stable_sort: libstdc++ 12's uses what clang 19 calls deprecated.)
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    const std::size_t bytes_a = padded_bytes(values[a]);
    const std::size_t bytes_b = padded_bytes(values[b]);
    return bytes_a != bytes_b ? bytes_a > bytes_b : a < b;
  });

  std::vector<std::size_t> placed;  // kept in order of offset
  for (const std::size_t v : order) {
    const std::size_t bytes = padded_bytes(values[v]);
    std::size_t offset = 0;
    for (const std::size_t other : placed) {
      const bool together = plan.lifetime[v].first <= plan.lifetime[other].last &&
                            plan.lifetime[other].first <= plan.lifetime[v].last;
      if (!together) continue;
      if (offset + bytes <= plan.offset[other]) break;
      offset = std::max(offset, plan.offset[other] + padded_bytes(values[other]));
    }
    plan.offset[v] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    const auto at =
        std::ranges::upper_bound(placed, offset, {}, [&](std::size_t p) { return plan.offset[p]; });
    placed.insert(at, v);
  }
  return plan;
}

}  // namespace sinew
