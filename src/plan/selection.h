// Which tensors of a plan, and what they add up to.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace sinew {

struct PlanFilter {
  std::vector<std::string> categories;  // none: all
  std::vector<std::string> names;       // none: all
};

/// Entries in both lists' sense, by (category, name). Throws Error (kNotFound): a category that the plan has
/// not (lists those it has), a name that it has not (lists the five that are spelled most like it).
std::vector<const PlanEntry*> select_entries(const Plan& plan, const PlanFilter& filter = {});

/// Count and bytes of some tensors.
struct PlanShare {
  std::size_t count = 0;
  std::size_t bytes = 0;
};

struct PlanSummary {
  std::map<std::string, PlanShare> by_category;
  std::map<std::string, PlanShare> by_dtype;
  PlanShare total;
};

PlanSummary summarise(const std::vector<const PlanEntry*>& entries);

}  // namespace sinew
