#include "backend/cpu/gemm_panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>

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
/// Of a block of zeros: a unit of 1, so that no subnormal is multiplied.
constexpr std::uint8_t kUnitOne = 133;

int exponent_of(BF16 value) { return value.bits >> 7 & 0xff; }

/// Sixteen columns (or the last few) at one k, zeros behind the last.
struct Block16 {
  std::array<BF16, kBlockSize> values{};
  int largest = 0;  // exponent
  bool zero = true;
};

Block16 read_block(const Columns<BF16>& from, std::int64_t first, std::int64_t i) {
  Block16 block;
  const std::int64_t count = std::min<std::int64_t>(kBlockSize, from.count - first);
  int bits = 0;
  for (std::int64_t c = 0; c < count; ++c) {
    const BF16 value = from.at(first + c, i);
    block.values[static_cast<std::size_t>(c)] = value;
    block.largest = std::max(block.largest, exponent_of(value));
    bits |= value.bits & 0x7fff;
  }
  block.zero = bits == 0;
  return block;
}

/// How many codes count to 1 under an exponent: no value under it has a code of 128 or more, and subnormals,
/// too, are whole numbers of the smallest unit.
double codes_in_one(int exponent) { return 1.0 / kBfp8Units[static_cast<std::size_t>(exponent)]; }

/// Names the first value that has no code: an infinity or NaN, or no whole number of codes.
Error no_bfp8_block(const Block16& block, std::int64_t column, std::int64_t i) {
  const auto no_code = [&](BF16 value) {
    if (block.largest == kNoNumber) return exponent_of(value) == kNoNumber;
    const double codes = codes_in_one(block.largest) * to_f32(value);
    return codes != std::trunc(codes);
  };
  const auto c = static_cast<std::size_t>(std::ranges::find_if(block.values, no_code) - block.values.begin());
  return fail(
      ErrorCode::kMismatch,
      "weight element [{},{}] = {} is not a bfp8_b value under its block's exponent {}; this storage keeps "
      "bfp8_b values only",
      column + static_cast<std::int64_t>(c), i, to_f32(block.values[c]), block.largest);
}

/// Codes to `codes`; returns the exponent byte.
std::uint8_t code_block(const Columns<BF16>& from, std::int64_t first, std::int64_t i, std::int8_t* codes) {
  std::fill_n(codes, kBlockSize, std::int8_t{0});
  if (first >= from.count || i >= from.k) return kUnitOne;
  const Block16 block = read_block(from, first, i);
  if (block.zero) return kUnitOne;
  if (block.largest == kNoNumber) throw no_bfp8_block(block, from.first + first, i);
  const double scale = codes_in_one(block.largest);
  bool whole = true;
  for (std::size_t c = 0; c < kBlockSize; ++c) {
    const double units = scale * to_f32(block.values[c]);
    const int code = static_cast<int>(units);
    codes[c] = static_cast<std::int8_t>(code);
    whole &= units == code;
  }
  if (!whole) throw no_bfp8_block(block, from.first + first, i);
  return static_cast<std::uint8_t>(block.largest);
}

/// Of a word's four codes the first two are of the first half of the panel, at k and k + 1.
void pack_bfp8(const Columns<BF16>& from, const PanelForm& form, std::byte* out) {
  const std::int64_t groups = form.width() / kBlockSize;
  std::array<std::int8_t, 2 * kBlockSize> row{};  // the widest panel
  for (std::int64_t i = 0; i < 2 * form.pairs(); ++i) {
    const std::int64_t pair = i / 2;
    std::byte* block = out + form.offset(pair / kBlockPairs * kBlockPairs);
    const std::int64_t within = pair % kBlockPairs;
    std::byte* exponents = block + kBlockPairs * 4 * form.lanes + (2 * within + i % 2) * groups;
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::int64_t first = group * kBlockSize;
      exponents[group] = static_cast<std::byte>(code_block(from, first, i, row.data() + first));
    }
    std::byte* codes = block + within * 4 * form.lanes + i % 2;
    for (std::int64_t lane = 0; lane < form.lanes; ++lane) {
      codes[4 * lane] = static_cast<std::byte>(row[static_cast<std::size_t>(lane)]);
      codes[4 * lane + 2] = static_cast<std::byte>(row[static_cast<std::size_t>(form.lanes + lane)]);
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
