// Shapes: up to eight extents, stored inline.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace sinew {

/// Row-major extents, outermost first. Rank 0 is a scalar with one element. Extents are never negative.
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  /// Throws Error (kLimit, kFormat) on more than eight dimensions, a negative extent, or when the number of
  /// elements does not fit in 63 bits.
  explicit Shape(std::span<const std::int64_t> dims);

  int rank() const { return rank_; }
  std::int64_t operator[](int i) const {
    assert(i >= 0 && i < rank_);
    return dims_[i];
  }
  std::int64_t back() const { return (*this)[rank_ - 1]; }
  /// Number of elements; 1 for a scalar.
  std::int64_t count() const { return count_; }
  /// count() / back(): the number of rows when the last axis is the row.
  std::int64_t rows() const;
  std::span<const std::int64_t> dims() const { return {dims_.data(), static_cast<std::size_t>(rank_)}; }
  bool operator==(const Shape& other) const;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
  std::int64_t count_ = 1;
};

/// "[1,3,256,192]"
std::string to_string(const Shape& shape);

}  // namespace sinew
