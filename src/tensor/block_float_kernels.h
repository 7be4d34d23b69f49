// Whole tensors to tiles of block floats and back: scalar, AVX2 and AVX-512, equal bit for bit, chosen at run
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "tensor/block_float.h"
#include "tensor/tensor.h"
#include "tensor/tile.h"

namespace sinew {

/// A tensor of f32 or bf16 [.., rows, columns] and where its tiles go.
struct BlockPackJob {
  /// Contiguous; need not be aligned.
  TensorView source;
  BlockFormat format = BlockFormat::kBfp8;
  BlockPacking packing;  // through_bf16 concerns f32 only
  /// tiled_bytes(source.shape, format) bytes. The padding of ragged edges becomes 0.
  std::span<std::byte> tiles;
  /// kLeastError is scalar whatever this says.
  Isa isa = best_isa();
};

/// Packs all of it. Returns the number of blocks whose exponent is 255: those with an infinity or a NaN, or
/// with a number that through_bf16 rounded to infinity. Throws Error (kUnsupported) for other dtypes,
/// (kLimit) as tile_grid() does; asserts the size of `tiles`.
std::int64_t pack_blocks(const BlockPackJob& job);
/// The rows of tiles first <= i < last of batch * tile_rows, so that threads can share a job.
std::int64_t pack_blocks(const BlockPackJob& job, std::int64_t first, std::int64_t last);

struct BlockUnpackJob {
  std::span<const std::byte> tiles;  // tiled_bytes(shape, format)
  BlockFormat format = BlockFormat::kBfp8;
  Shape shape;
  DType dtype = DType::kF32;  // or kBF16, which holds every value too
  std::byte* out = nullptr;   // shape.count() elements, row-major; need not be aligned
  Isa isa = best_isa();
};

/// Errors as for pack_blocks().
void unpack_blocks(const BlockUnpackJob& job);
void unpack_blocks(const BlockUnpackJob& job, std::int64_t first, std::int64_t last);

namespace kernels {

/// One tile. Rows of the matrix lie `stride` bytes apart; neither side need be aligned.
using PackTile = void (*)(const std::byte* source, std::int64_t stride, const BlockPacking& packing,
                          std::byte* tile);
using UnpackTile = void (*)(const std::byte* tile, std::byte* out, std::int64_t stride);

/// Indexed by BlockFormat.
struct BlockKernels {
  Isa isa;
  PackTile pack_f32[3];
  PackTile pack_bf16[3];
  UnpackTile unpack_f32[3];
  UnpackTile unpack_bf16[3];
};

extern const BlockKernels kBlockBaseline;
#if defined(__x86_64__)
extern const BlockKernels kBlockAvx2;
extern const BlockKernels kBlockAvx512;
#endif
/// The best table up to `limit`.
const BlockKernels& block_kernels(Isa limit);

}  // namespace kernels
}  // namespace sinew
