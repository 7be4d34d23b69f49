#include "plan/quantise.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "base/error.h"
#include "tensor/block_float_kernels.h"

namespace sinew::transforms {
namespace {

struct Matrix {
  double* values;
  std::int64_t rows;
  std::int64_t columns;
};
Matrix matrix_of(Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (shape.rank() != 2)
    throw fail(ErrorCode::kMismatch, "the tensor is {}; expected a matrix [N,K]", to_string(shape));
  return {tensor.as<double>().data(), shape[0], shape[1]};
}

Error not_finite(std::int64_t row, std::int64_t column, double value, const char* in = "") {
  return fail(ErrorCode::kMismatch, "element [{},{}] is {}; expected numbers that are finite{}", row, column,
              value, in);
}

/// convert_into() from f64 to bf16, several times as fast: by way of f32, unless a number might so be rounded
/// twice (its f32 is a tie between two bf16) or is not finite. Written so that compilers vectorise it.
void round_to_bf16(std::span<const double> values, BF16* out) {
  std::uint32_t doubtful = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(values[i]));
    doubtful |= static_cast<std::uint32_t>((bits & 0xffffU) == 0x8000U);
    doubtful |= static_cast<std::uint32_t>((bits & 0x7f800000U) == 0x7f800000U);
    out[i].bits = static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
  }
  const Shape shape{static_cast<std::int64_t>(values.size())};
  if (doubtful != 0) convert_into(TensorView(DType::kF64, shape, values.data()), DType::kBF16, out);
}

/// Quantises a matrix piece by piece: as many rows as a tile has columns (two blocks), and as many columns as
/// keep the buffers (two of 16 KiB) and the piece itself (64 KiB of f64) in L2.
class Bfp8Pieces {
 public:
  explicit Bfp8Pieces(const Matrix& matrix) : matrix_(matrix) {}

  void quantise(std::int64_t first_row, std::int64_t first_column) {
    rows_ = std::min(kRows, matrix_.rows - first_row);
    columns_ = std::min(kColumns, matrix_.columns - first_column);
    double* piece = matrix_.values + first_row * matrix_.columns + first_column;
    read(piece);
    const Shape shape{columns_, kRows};
    const TensorView values(DType::kBF16, shape, turned_.data());
    const std::span<std::byte> tiles = std::span(tiles_).first(tiled_bytes(shape, BlockFormat::kBfp8));
    // What is packed is bf16 already, rounded once and from double.
    if (pack_blocks({values, BlockFormat::kBfp8, {.through_bf16 = true}, tiles}) > 0)
      refuse(first_row, first_column);
    unpack_blocks(
        {tiles, BlockFormat::kBfp8, shape, DType::kBF16, reinterpret_cast<std::byte*>(turned_.data())});
    write(piece);
  }

  static constexpr std::int64_t kRows = kTileSide;
  static constexpr std::int64_t kColumns = 256;

 private:
  /// The piece in bf16 with a block's sixteen side by side: [columns, kRows], zeros where rows are missing.
  void read(const double* piece) {
    for (std::int64_t r = 0; r < rows_; ++r) {
      const std::span<const double> row(piece + r * matrix_.columns, static_cast<std::size_t>(columns_));
      round_to_bf16(row, &straight_[static_cast<std::size_t>(r * kColumns)]);
    }
    std::fill(straight_.begin() + rows_ * kColumns, straight_.end(), BF16{0});
    for (std::int64_t c = 0; c < columns_; ++c) {
      for (std::int64_t r = 0; r < kRows; ++r) turned_[c * kRows + r] = straight_[r * kColumns + c];
    }
  }

  void write(double* piece) {
    for (std::int64_t r = 0; r < rows_; ++r) {
      for (std::int64_t c = 0; c < columns_; ++c) straight_[r * kColumns + c] = turned_[c * kRows + r];
    }
    for (std::int64_t r = 0; r < rows_; ++r) {
      const BF16* from = &straight_[static_cast<std::size_t>(r * kColumns)];
      std::transform(from, from + columns_, piece + r * matrix_.columns, [](BF16 v) { return to_f32(v); });
    }
  }

  [[noreturn]] void refuse(std::int64_t first_row, std::int64_t first_column) const {
    for (std::int64_t r = 0; r < rows_; ++r) {
      for (std::int64_t c = 0; c < columns_; ++c) {
        if (std::isfinite(to_f32(turned_[c * kRows + r]))) continue;
        const std::int64_t row = first_row + r;
        const std::int64_t column = first_column + c;
        throw not_finite(row, column, matrix_.values[row * matrix_.columns + column], " in bf16");
      }
    }
    throw fail(ErrorCode::kMismatch, "a block without a number that is not finite has exponent 255");
  }

  Matrix matrix_;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  alignas(64) std::array<BF16, kRows * kColumns> straight_;
  alignas(64) std::array<BF16, kRows * kColumns> turned_;
  alignas(64) std::array<std::byte, kColumns / kTileSide * tile_bytes(BlockFormat::kBfp8)> tiles_;
};

/// The scale of row n, a value of f32.
double scale_of(const Matrix& matrix, std::int64_t n) {
  const std::span<const double> row(matrix.values + n * matrix.columns,
                                    static_cast<std::size_t>(matrix.columns));
  double largest = 0;
  for (const double& w : row) {
    if (!std::isfinite(w)) throw not_finite(n, &w - row.data(), w);
    largest = std::max(largest, std::fabs(w));
  }
  if (largest == 0) return 0;
  const float scale = std::max(static_cast<float>(largest / 127), std::numeric_limits<float>::min());
  if (!std::isfinite(scale)) {
    throw fail(ErrorCode::kMismatch,
               "row {} has an element of magnitude {}; expected at most 127 times f32's largest", n, largest);
  }
  return scale;
}

}  // namespace

Step quantise_bfp8() {
  return {"bfp8_b", [](Tensor tensor) {
            const Matrix matrix = matrix_of(tensor);
            Bfp8Pieces pieces(matrix);
            for (std::int64_t row = 0; row < matrix.rows; row += Bfp8Pieces::kRows) {
              for (std::int64_t column = 0; column < matrix.columns; column += Bfp8Pieces::kColumns)
                pieces.quantise(row, column);
            }
            return tensor;
          }};
}

Step int8_codes() {
  return {"int8 codes", [](Tensor tensor) {
            const Matrix matrix = matrix_of(tensor);
            double* next = matrix.values;
            for (std::int64_t n = 0; n < matrix.rows; ++n) {
              const double scale = scale_of(matrix, n);
              // Without a scale all codes are 0; + 0.0 makes 0 of -0.
              for (std::int64_t k = 0; k < matrix.columns; ++k, ++next)
                *next = scale == 0 ? 0 : std::nearbyint(*next / scale) + 0.0;
            }
            return tensor;
          }};
}

Step int8_scales() {
  return {"int8 scales", [](Tensor tensor) {
            const Matrix matrix = matrix_of(tensor);
            Tensor scales(DType::kF64, Shape{matrix.rows});
            for (std::int64_t n = 0; n < matrix.rows; ++n) scales.as<double>()[n] = scale_of(matrix, n);
            return scales;
          }};
}

}  // namespace sinew::transforms
