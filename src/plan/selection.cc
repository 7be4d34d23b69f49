#include "plan/selection.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/text.h"

namespace sinew {
namespace {

constexpr std::size_t kSuggestions = 5;

bool listed(const std::vector<std::string>& list, const std::string& word) {
  return list.empty() || std::ranges::find(list, word) != list.end();
}

void check(const Plan& plan, const PlanFilter& filter) {
  std::set<std::string> categories;
  std::vector<std::string> names;
  for (const auto& [name, entry] : plan.entries()) {
    categories.insert(entry.category);
    names.push_back(name);
  }
  for (const std::string& category : filter.categories) {
    if (categories.contains(category)) continue;
    throw fail(ErrorCode::kNotFound, "the plan has no category {}; there are {}", category,
               fmt::join(categories, ", "));
  }
  for (const std::string& name : filter.names) {
    if (plan.entries().contains(name)) continue;
    throw fail(ErrorCode::kNotFound, "the plan has no tensor {}; nearest are {}", name,
               fmt::join(nearest_words(names, name, kSuggestions), ", "));
  }
}

}  // namespace

std::vector<const PlanEntry*> select_entries(const Plan& plan, const PlanFilter& filter) {
  check(plan, filter);
  std::vector<const PlanEntry*> selected;
  for (const auto& [name, entry] : plan.entries()) {
    if (listed(filter.categories, entry.category) && listed(filter.names, name)) selected.push_back(&entry);
  }
  std::ranges::sort(selected, {},
                    [](const PlanEntry* entry) { return std::tie(entry->category, entry->name); });
  return selected;
}

PlanSummary summarise(const std::vector<const PlanEntry*>& entries) {
  PlanSummary summary;
  for (const PlanEntry* entry : entries) {
    for (PlanShare* share : {&summary.by_category[entry->category],
                             &summary.by_dtype[std::string(to_string(entry->dtype))], &summary.total}) {
      ++share->count;
      share->bytes += entry->bytes();
    }
  }
  return summary;
}

}  // namespace sinew
