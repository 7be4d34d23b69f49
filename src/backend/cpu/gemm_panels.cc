#include "backend/cpu/gemm_panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <optional>

#include "backend/cpu/gemm_kernels.h"
#include "base/checked.h"
#include "base/error.h"
#include "tensor/block_float.h"

namespace sinew::cpu {
namespace {

/// Columns [first, first + count) of the weight, which are rows [N,K] where it is stored.
template <typename T>
struct Columns {
  const std::byte* data;
  std::int64_t k, first, count;
  T at(std::int64_t column, std::int64_t i) const {
    T value;
    std::memcpy(&value, data + static_cast<std::size_t>((first + column) * k + i) * sizeof(T), sizeof(T));
    return value;
  }
};

/// [step][width][together]; `out` is zero where nothing is written.
template <typename T>
void pack_steps(const Columns<T>& from, std::int64_t width, std::int64_t together, std::byte* out) {
  for (std::int64_t i = 0; i < from.k; ++i) {
    std::byte* step =
        out + static_cast<std::size_t>(i / together * width * together + i % together) * sizeof(T);
    for (std::int64_t column = 0; column < from.count; ++column) {
      const T value = from.at(column, i);
      std::memcpy(step + static_cast<std::size_t>(column * together) * sizeof(T), &value, sizeof(T));
    }
  }
}

constexpr int kNoNumber = 255;  // the exponent of infinity and NaN
constexpr std::uint8_t kUnitOne =
    133;  // of a block of zeros: a unit of 1, so that no subnormal is multiplied

int exponent_of(BF16 value) { return value.bits >> 7 & 0xff; }

/// The value in units of 2^(exponent - 133), or nothing when it is no whole number of them below 128.
/// Subnormals are whole numbers of 2^-133, too.
std::optional<int> code_of(BF16 value, int exponent) {
  const int own = exponent_of(value);
  const int significand = own == 0 ? 2 * (value.bits & 0x7f) : 0x80 | (value.bits & 0x7f);
  const int shift = exponent - own + 1;  // the significand counts units of 2^(own - 134)
  if (significand == 0) return 0;
  if (shift < 1 || shift > 8 || (significand & ((1 << shift) - 1)) != 0) return std::nullopt;
  return (value.bits & 0x8000) != 0 ? -(significand >> shift) : significand >> shift;
}

/// Sixteen columns (or the last few) at one k.
struct CodedColumns {
  std::uint8_t exponent = kUnitOne;
  std::array<std::int8_t, kBlockSize> codes{};
};

CodedColumns code_columns(const Columns<BF16>& from, std::int64_t first, std::int64_t i) {
  const std::int64_t count = std::min<std::int64_t>(kBlockSize, from.count - first);
  CodedColumns coded;
  int largest = 0;
  bool any = false;
  for (std::int64_t c = 0; c < count; ++c) {
    const BF16 value = from.at(first + c, i);
    largest = std::max(largest, exponent_of(value));
    any = any || (value.bits & 0x7fff) != 0;
  }
  if (!any) return coded;
  for (std::int64_t c = 0; c < count; ++c) {
    const BF16 value = from.at(first + c, i);
    const std::optional<int> code = largest == kNoNumber ? std::nullopt : code_of(value, largest);
    if (!code) {
      throw fail(ErrorCode::kMismatch,
                 "weight element [{},{}] = {} is not a bfp8_b value under its block's exponent {}; this "
                 "storage keeps "
                 "bfp8_b values only",
                 from.first + first + c, i, to_f32(value), largest);
    }
    coded.codes[static_cast<std::size_t>(c)] = static_cast<std::int8_t>(*code);
  }
  coded.exponent = static_cast<std::uint8_t>(largest);
  return coded;
}

/// A panel of `lanes` times two columns; of a word's four codes the first two are of the first half at k, k
/// + 1.
void pack_bfp8(const Columns<BF16>& from, const PanelForm& form, std::byte* out) {
  const std::int64_t groups = form.width() / kBlockSize;
  for (std::int64_t i = 0; i < 2 * form.pairs(); ++i) {
    const std::int64_t pair = i / 2;
    std::byte* block = out + form.offset(pair / kBlockPairs * kBlockPairs);
    const std::int64_t within = pair % kBlockPairs;
    std::byte* codes = block + within * 4 * form.lanes;
    std::byte* exponents = block + kBlockPairs * 4 * form.lanes + (2 * within + i % 2) * groups;
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::int64_t first = group * kBlockSize;
      const CodedColumns coded =
          i < form.k && first < from.count ? code_columns(from, first, i) : CodedColumns{};
      exponents[group] = static_cast<std::byte>(coded.exponent);
      for (std::int64_t c = 0; c < kBlockSize; ++c) {
        const std::int64_t column = first + c;
        codes[column % form.lanes * 4 + column / form.lanes * 2 + i % 2] =
            static_cast<std::byte>(coded.codes[static_cast<std::size_t>(c)]);
      }
    }
  }
}

}  // namespace

std::int64_t PanelForm::offset(std::int64_t pair) const {
  if (kind == PanelKind::kF32) return 2 * pair * width() * 4;
  if (kind == PanelKind::kPairs) return pair * width() * 4;
  assert(pair % kBlockPairs == 0);
  return pair * (4 * lanes + 2 * width() / kBlockSize);
}

std::int64_t PanelForm::panel_bytes() const {
  if (kind == PanelKind::kF32) return k * width() * 4;
  return offset(kind == PanelKind::kBfp8 ? round_up<std::int64_t>(pairs(), kBlockPairs) : pairs());
}

std::string PanelForm::layout() const {
  // Raise the version whenever the bytes change.
  const char* order = kind == PanelKind::kF32     ? "k by k"
                      : kind == PanelKind::kPairs ? "pairs of k"
                                                  : "pairs of k, blocks of 16 pairs with exponents behind";
  return fmt::format("panels of {}, {}, v1", width(), order);
}

void pack_panels_of(const TensorView& weight, const PanelForm& form, std::span<std::byte> out) {
  assert(out.size() == static_cast<std::size_t>(form.bytes()) && weight.contiguous());
  std::ranges::fill(out, std::byte{0});
  for (std::int64_t panel = 0; panel < form.panels(); ++panel) {
    const std::int64_t first = panel * form.width();
    const std::int64_t count = std::min(form.width(), form.n - first);
    std::byte* to = out.data() + panel * form.panel_bytes();
    if (form.kind == PanelKind::kF32) {
      pack_steps(Columns<float>{weight.data, form.k, first, count}, form.width(), 1, to);
    } else if (form.kind == PanelKind::kPairs) {
      pack_steps(Columns<BF16>{weight.data, form.k, first, count}, form.width(), 2, to);
    } else {
      pack_bfp8({weight.data, form.k, first, count}, form, to);
    }
  }
}

}  // namespace sinew::cpu
