// The 16-bit floats against a reference that shares no trick with them: patterns are decoded from their
// fields with ldexp, and a value is rounded by searching the table of decoded patterns and comparing with the
// midpoint of two neighbours, which a double holds exactly (12 bits of mantissa at most, exponents far inside
// its range).
#include "tensor/float16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tensor/tensor.h"

namespace sinew {
namespace {

/// A 16-bit format by its field widths, with the values of all patterns without sign. The pattern of infinity
/// stands for the power of two that would follow the largest finite value: half-way to it is where overflow
/// begins.
class Reference {
 public:
  Reference(int exponent_bits, int mantissa_bits)
      : mantissa_bits_(mantissa_bits), infinity_(((1 << exponent_bits) - 1) << mantissa_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    for (int pattern = 0; pattern <= infinity_; ++pattern) {
      const int exponent = pattern >> mantissa_bits;
      const int fraction = pattern & ((1 << mantissa_bits) - 1);
      const int integer = exponent == 0 ? fraction : fraction + (1 << mantissa_bits);
      values_.push_back(std::ldexp(integer, std::max(exponent, 1) - bias - mantissa_bits));
    }
  }

  int infinity() const { return infinity_; }
  bool is_nan(int pattern) const { return (pattern & 0x7fff) > infinity_; }
  int quiet_bit() const { return 1 << (mantissa_bits_ - 1); }

  double decode(int pattern) const {
    const int magnitude = pattern & 0x7fff;
    const double value =
        magnitude == infinity_ ? std::numeric_limits<double>::infinity() : values_[magnitude];
    return (pattern & 0x8000) != 0 ? -value : value;
  }
  double midpoint_after(int magnitude) const { return (values_[magnitude] + values_[magnitude + 1]) / 2; }

  /// Nearest pattern, ties to the even one.
  int round(double value) const {
    const int sign = std::signbit(value) ? 0x8000 : 0;
    const double magnitude = std::fabs(value);
    if (magnitude >= values_[infinity_]) return sign | infinity_;
    const auto above = std::upper_bound(values_.begin(), values_.end(), magnitude);
    const int low = static_cast<int>(above - values_.begin()) - 1;
    const double middle = midpoint_after(low);
    const bool up = magnitude > middle || (magnitude == middle && low % 2 == 1);
    return sign | (up ? low + 1 : low);
  }

 private:
  int mantissa_bits_;
  int infinity_;
  std::vector<double> values_;
};

const Reference& bf16_reference() {
  static const Reference reference(8, 7);
  return reference;
}
const Reference& f16_reference() {
  static const Reference reference(5, 10);
  return reference;
}

TEST(Reference, KnownValues) {
  EXPECT_EQ(bf16_reference().decode(0x3f80), 1.0);
  EXPECT_EQ(bf16_reference().decode(0xc2f7), -123.5);
  EXPECT_EQ(bf16_reference().decode(0x0001), std::ldexp(1.0, -133));
  EXPECT_EQ(f16_reference().decode(0x3c00), 1.0);
  EXPECT_EQ(f16_reference().decode(0x7bff), 65504.0);
  EXPECT_EQ(f16_reference().decode(0x0001), std::ldexp(1.0, -24));
  EXPECT_EQ(f16_reference().round(65519.99), 0x7bff);
  EXPECT_EQ(f16_reference().round(65520), 0x7c00);
}

template <typename Half>
void check_widening(const Reference& reference) {
  for (int pattern = 0; pattern < 0x10000; ++pattern) {
    const float wide = to_f32(Half{static_cast<std::uint16_t>(pattern)});
    const bool negative = (pattern & 0x8000) != 0;
    ASSERT_EQ(std::signbit(wide), negative) << std::hex << pattern;
    if (reference.is_nan(pattern)) {
      ASSERT_TRUE(std::isnan(wide)) << std::hex << pattern;
    } else {
      ASSERT_EQ(wide, reference.decode(pattern)) << std::hex << pattern;
    }
  }
}

TEST(BF16, WidensEveryPattern) { check_widening<BF16>(bf16_reference()); }
TEST(F16, WidensEveryPattern) { check_widening<F16>(f16_reference()); }

std::uint16_t narrow(BF16*, float value) { return to_bf16(value).bits; }
std::uint16_t narrow(F16*, float value) { return to_f16(value).bits; }

template <typename Half>
void expect_rounded(const Reference& reference, float value) {
  ASSERT_EQ(narrow(static_cast<Half*>(nullptr), value), reference.round(value))
      << std::hexfloat << value << std::hex << " bits " << std::bit_cast<std::uint32_t>(value);
}

template <typename Half>
void check_around(const Reference& reference, double exact) {
  // Every value and midpoint of bf16 is an f32, apart from the midpoint after the largest, and of f16
  // likewise.
  const auto value = static_cast<float>(exact);
  if (static_cast<double>(value) != exact) FAIL() << std::hexfloat << exact;
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float x : {value, std::nextafter(value, infinity), std::nextafter(value, -infinity)}) {
    expect_rounded<Half>(reference, x);
    expect_rounded<Half>(reference, -x);
  }
}

template <typename Half>
void check_every_boundary(const Reference& reference) {
  for (int pattern = 0; pattern < reference.infinity(); ++pattern) {
    check_around<Half>(reference, reference.decode(pattern));
    check_around<Half>(reference, reference.midpoint_after(pattern));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(BF16, NarrowsAtEveryValueAndMidpoint) { check_every_boundary<BF16>(bf16_reference()); }
TEST(F16, NarrowsAtEveryValueAndMidpoint) { check_every_boundary<F16>(f16_reference()); }

template <typename Half>
void check_specials(const Reference& reference) {
  Half* const tag = nullptr;
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(narrow(tag, infinity), reference.infinity());
  EXPECT_EQ(narrow(tag, -infinity), reference.infinity() | 0x8000);
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(narrow(tag, largest), reference.infinity());
  EXPECT_EQ(narrow(tag, -largest), reference.infinity() | 0x8000);
  EXPECT_EQ(narrow(tag, 0.0F), 0);
  EXPECT_EQ(narrow(tag, -0.0F), 0x8000);
  EXPECT_EQ(narrow(tag, std::numeric_limits<float>::denorm_min()), 0);
  // Payloads in every single bit, alone: the low ones are lost, the number must stay a NaN (and become
  // quiet).
  for (int bit = 0; bit < 23; ++bit) {
    for (const std::uint32_t sign : {0U, 0x80000000U}) {
      const auto half = narrow(tag, std::bit_cast<float>(sign | 0x7f800000U | (1U << bit)));
      EXPECT_TRUE(reference.is_nan(half)) << bit;
      EXPECT_NE(half & reference.quiet_bit(), 0) << bit;
      EXPECT_EQ(half & 0x8000, sign >> 16) << bit;
    }
  }
  EXPECT_TRUE(reference.is_nan(narrow(tag, std::bit_cast<float>(0x7fffffffU))));
}

TEST(BF16, Specials) { check_specials<BF16>(bf16_reference()); }
TEST(F16, Specials) { check_specials<F16>(f16_reference()); }

template <typename Half>
void check_random(const Reference& reference) {
  std::mt19937 random(20240601);
  for (int i = 0; i < 1'000'000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(value)) {
      ASSERT_TRUE(reference.is_nan(narrow(static_cast<Half*>(nullptr), value)));
    } else {
      expect_rounded<Half>(reference, value);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(BF16, NarrowsRandomPatterns) { check_random<BF16>(bf16_reference()); }
TEST(F16, NarrowsRandomPatterns) { check_random<F16>(f16_reference()); }

/// double to 16 bits rounds once: doubles one ulp beside a midpoint become that midpoint when they pass
/// through f32.
template <typename Half>
void check_double_rounding(const Reference& reference) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> values;
  for (int pattern = 0; pattern < reference.infinity(); ++pattern) {
    for (const double middle : {reference.midpoint_after(pattern), reference.decode(pattern)}) {
      for (const double x : {middle, std::nextafter(middle, infinity), std::nextafter(middle, -infinity),
                             middle * (1 + 1e-12), middle * (1 - 1e-12)}) {
        values.push_back(x);
        values.push_back(-x);
      }
    }
  }
  std::mt19937_64 random(7);
  for (int i = 0; i < 100'000; ++i) {
    const auto x = std::bit_cast<double>(static_cast<std::uint64_t>(random()));
    if (!std::isnan(x)) values.push_back(x);
  }
  const TensorView view(DType::kF64, Shape{static_cast<std::int64_t>(values.size())}, values.data());
  const Tensor halves = convert(view, DTypeOf<Half>::value);
  const auto found = halves.as<Half>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(found[i].bits, reference.round(values[i])) << std::hexfloat << values[i];
  }
}

TEST(BF16, ConvertFromDoubleRoundsOnce) { check_double_rounding<BF16>(bf16_reference()); }
TEST(F16, ConvertFromDoubleRoundsOnce) { check_double_rounding<F16>(f16_reference()); }

// Usable in constant expressions.
static_assert(to_bf16(1.0F).bits == 0x3f80 && to_f32(BF16{0xc2f7}) == -123.5F);
static_assert(to_f16(65504.0F).bits == 0x7bff && to_f32(F16{0x0001}) == 0x1p-24F);

}  // namespace
}  // namespace sinew
