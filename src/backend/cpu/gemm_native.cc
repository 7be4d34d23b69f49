#include "backend/cpu/gemm_native.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "backend/cpu/gemm_kernels.h"
#include "backend/cpu/gemm_panels.h"
#include "base/checked.h"

namespace sinew::cpu {
namespace {

constexpr std::int64_t kAlignment = AlignedBuffer::kAlignment;
/// Steps of k that all rows run over before the next: the weights of a panel (32 KiB at 32 columns) and the
/// rows of a tile (12 KiB) then come from the first-level cache.
constexpr std::int64_t kBlockSteps = 256;
/// Rows that share a pass over a panel: their sums (32 columns of f32) and rows stay in the second-level
/// cache.
constexpr std::int64_t kBlockRows = 384;

/// The panel form of a weight for products of this shape.
PanelForm panel_form(const GemmShape& shape, const GemmKernels& kernels) {
  const PanelKind kind = shape.storage == WeightStorage::kBfp8 ? PanelKind::kBfp8
                         : shape.operand == DType::kBF16       ? PanelKind::kPairs
                                                               : PanelKind::kF32;
  return {.kind = kind, .lanes = kernels.lanes, .n = shape.n, .k = shape.k};
}

/// What is done with x and the weight before they meet.
struct Method {
  const char* name;
  GemmKernels::Pack pack;
  GemmKernels::Expand expand;  // null: panels are used as they lie
  std::array<GemmKernels::Product, 3> product;
  bool pairs;  // of k in a step
};

Method method_for(PanelKind kind, const GemmKernels& kernels) {
  const bool dot = kernels.product_pairs[0] != nullptr;
  if (kind == PanelKind::kF32) return {"f32", kernels.pack_f32, nullptr, kernels.product_f32, false};
  if (kind == PanelKind::kPairs) {
    if (dot) return {"bf16", kernels.pack_pairs, nullptr, kernels.product_pairs, true};
    return {"bf16 widened", kernels.pack_widened, kernels.widen_pairs, kernels.product_f32, false};
  }
  if (dot) return {"bfp8 by bf16", kernels.pack_pairs, kernels.expand_bfp8, kernels.product_pairs, true};
  return {"bfp8 widened", kernels.pack_widened, kernels.widen_bfp8, kernels.product_f32, false};
}

/// How a product is cut up; none of it changes a bit of the result, because each sum runs over k in order.
struct Cut {
  int group = 0;           // index into kPanelGroups
  std::int64_t tiles = 0;  // of rows, equal but for one row: 49 are 10 10 10 10 9, not 12 12 12 12 1
  std::int64_t row_blocks = 0;
  std::int64_t tasks = 0;
};

Cut cut_for(const GemmShape& shape, std::int64_t panels, const GemmKernels& kernels, std::int64_t threads) {
  Cut cut;
  // Few rows are bound by memory: several streams of weights at once, as long as each thread has its share.
  while (cut.group < 2 && shape.m <= kernels.most_rows[cut.group + 1] &&
         panels >= threads * kPanelGroups[cut.group + 1])
    ++cut.group;
  const std::int64_t most = kernels.most_rows[cut.group];
  cut.tiles = (shape.m + most - 1) / most;
  const std::int64_t groups = (panels + kPanelGroups[cut.group] - 1) / kPanelGroups[cut.group];
  const std::int64_t for_cache = (shape.m + kBlockRows - 1) / kBlockRows;
  const std::int64_t for_threads = threads == 1 ? 1 : (4 * threads + groups - 1) / groups;
  cut.row_blocks = std::clamp<std::int64_t>(std::max(for_cache, for_threads), 1, cut.tiles);
  cut.tasks = groups * cut.row_blocks;
  return cut;
}

class NativeGemm final : public Gemm {
 public:
  NativeGemm(const GemmShape& shape, const GemmOperands& operands, int threads, const GemmKernels& kernels)
      : shape_(shape),
        operands_(operands),
        kernels_(kernels),
        form_(panel_form(shape, kernels)),
        method_(method_for(form_.kind, kernels)),
        cut_(cut_for(shape, form_.panels(), kernels, threads)),
        threads_(threads) {
    steps_ = form_.kind == PanelKind::kF32 ? shape.k : method_.pairs ? form_.pairs() : 2 * form_.pairs();
    // What is expanded for several panels is to stay in the first-level cache as well.
    block_steps_ = method_.expand == nullptr ? kBlockSteps : kBlockSteps / kPanelGroups[cut_.group];
  }

  ScratchSize scratch() const override {
    return {.shared = static_cast<std::size_t>(round_up(shape_.m * steps_ * kWord, kAlignment)),
            .per_thread = static_cast<std::size_t>(sums_bytes() + expanded_bytes())};
  }
  void bind_scratch(const Scratch& scratch) override { scratch_ = scratch; }
  void run(ThreadPool& pool) noexcept override {
    pool.parallel_for(static_cast<int>(cut_.tiles), [this](int tile, int) { pack_tile(tile); });
    pool.parallel_for(static_cast<int>(cut_.tasks), [this](int task, int worker) { multiply(task, worker); });
  }
  std::string implementation() const override {
    return fmt::format("sinew {} {}", to_string(kernels_.isa), method_.name);
  }

 private:
  static constexpr std::int64_t kWord = 4;  // bytes of a packed word

  std::int64_t first_row(std::int64_t tile) const { return shape_.m * tile / cut_.tiles; }
  std::int64_t most_panels() const {
    return std::min<std::int64_t>(kPanelGroups[cut_.group], form_.panels());
  }
  std::int64_t sums_bytes() const {
    const std::int64_t most = kernels_.most_rows[cut_.group];
    const std::int64_t rows = std::min(shape_.m, (cut_.tiles / cut_.row_blocks + 1) * most);
    return round_up(rows * most_panels() * form_.width() * kWord, kAlignment);
  }
  std::int64_t expanded_bytes() const {
    if (method_.expand == nullptr) return 0;
    return most_panels() * block_steps_ * form_.width() * kWord;
  }
  /// Bytes from a panel's start to step `step` of its k.
  std::int64_t panel_offset(std::int64_t step) const {
    if (form_.kind == PanelKind::kF32) return step * form_.width() * kWord;
    return form_.offset(method_.pairs ? step : step / 2);
  }

  void pack_tile(std::int64_t tile) const noexcept {
    const std::int64_t row = first_row(tile);
    const auto bytes = static_cast<std::int64_t>(size_of(shape_.operand));
    method_.pack({.x = operands_.x + row * shape_.k * bytes,
                  .rows = first_row(tile + 1) - row,
                  .k = shape_.k,
                  .out = scratch_.shared + row * steps_ * kWord});
  }

  /// One group of panels for one block of rows.
  void multiply(std::int64_t task, int worker) const noexcept {
    const std::int64_t block = task % cut_.row_blocks;
    const std::int64_t size = kPanelGroups[cut_.group];
    Part part;
    part.first_tile = cut_.tiles * block / cut_.row_blocks;
    part.last_tile = cut_.tiles * (block + 1) / cut_.row_blocks;
    part.sums = reinterpret_cast<float*>(scratch_.of_thread(worker));
    part.expanded = scratch_.of_thread(worker) + sums_bytes();
    part.panel = task / cut_.row_blocks * size;
    const std::int64_t last = std::min(part.panel + size, form_.panels());
    for (int group = cut_.group; part.panel < last; part.panel += kPanelGroups[group]) {
      while (kPanelGroups[group] > last - part.panel) --group;
      part.group = group;
      multiply_part(part);
    }
  }

  struct Part {
    std::int64_t panel = 0;
    int group = 0;
    std::int64_t first_tile = 0, last_tile = 0;
    float* sums = nullptr;
    std::byte* expanded = nullptr;
  };

  void multiply_part(const Part& part) const noexcept {
    const std::int64_t row = first_row(part.first_tile);
    const std::int64_t rows = first_row(part.last_tile) - row;
    const std::int64_t width = kPanelGroups[part.group] * form_.width();
    std::memset(part.sums, 0, static_cast<std::size_t>(rows * width * kWord));
    for (std::int64_t step = 0; step < steps_; step += block_steps_) multiply_steps(part, step);
    const std::int64_t column = part.panel * form_.width();
    const std::int64_t at = row * shape_.n + column;
    FinishRows finish;
    finish.sums = part.sums;
    finish.sums_stride = width;
    finish.rows = rows;
    finish.columns = std::min(width, shape_.n - column);
    finish.bias = shape_.bias ? operands_.bias + column : nullptr;
    finish.residual = shape_.residual ? operands_.residual + at : nullptr;
    finish.out = operands_.out + at * static_cast<std::int64_t>(size_of(shape_.out));
    finish.stride = shape_.n;
    finish.gelu = shape_.gelu;
    shape_.out == DType::kF32 ? kernels_.finish_f32(finish) : kernels_.finish_bf16(finish);
  }

  /// block_steps_ steps, or what is left, of all rows of a part.
  void multiply_steps(const Part& part, std::int64_t step) const noexcept {
    const std::int64_t count = std::min(block_steps_, steps_ - step);
    const std::byte* packed = operands_.weight + part.panel * form_.panel_bytes() + panel_offset(step);
    ProductTile tile;
    tile.panel = packed;
    tile.panel_stride = form_.panel_bytes();
    tile.steps = count;
    if (method_.expand != nullptr) {
      tile.panel = part.expanded;
      tile.panel_stride = block_steps_ * form_.width() * kWord;
      for (int p = 0; p < kPanelGroups[part.group]; ++p) {
        method_.expand(packed + p * form_.panel_bytes(), method_.pairs ? count : count / 2,
                       part.expanded + p * tile.panel_stride);
      }
    }
    // Meanwhile each tile fetches its share of the weights that this thread wants next.
    const std::int64_t next_bytes = panel_offset(block_steps_);
    const std::int64_t tiles = part.last_tile - part.first_tile;
    tile.next_stride = form_.panel_bytes();
    tile.next_bytes = (next_bytes / tiles + block_steps_ - 1) / block_steps_;
    const std::byte* next = packed + next_bytes;
    if (step + count == steps_)
      next = packed - panel_offset(step) + form_.panel_bytes() * kPanelGroups[part.group] * threads_;
    for (std::int64_t t = part.first_tile; t < part.last_tile; ++t) {
      const std::int64_t row = first_row(t);
      const std::int64_t rows = first_row(t + 1) - row;
      tile.rows = scratch_.shared + (row * steps_ + step * rows) * kWord;
      tile.sums = part.sums + (row - first_row(part.first_tile)) * kPanelGroups[part.group] * form_.width();
      tile.next = next + (t - part.first_tile) * tile.next_bytes * count;
      method_.product[static_cast<std::size_t>(part.group)](tile, static_cast<int>(rows));
    }
  }

  GemmShape shape_;
  GemmOperands operands_;
  const GemmKernels& kernels_;
  PanelForm form_;
  Method method_;
  Cut cut_;
  std::int64_t threads_;
  std::int64_t steps_ = 0;        // of the whole k
  std::int64_t block_steps_ = 0;  // of a block of it
  Scratch scratch_;
};

}  // namespace

const GemmKernels* gemm_kernels(Isa limit) {
#if defined(__x86_64__)
  switch (std::min(limit, best_isa())) {
    case Isa::kAmx:
    case Isa::kAvx512Bf16:
      return &kGemmAvx512Bf16;
    case Isa::kAvx512Vnni:
    case Isa::kAvx512:
      return &kGemmAvx512;
    case Isa::kAvx2:
      return &kGemmAvx2;
    case Isa::kBaseline:
      break;
  }
#else
  (void)limit;
#endif
  return nullptr;
}

Isa native_isa(Isa limit) {
  const Isa isa = std::min(limit, best_isa());
#if defined(__x86_64__)
  if (__builtin_cpu_is("intel")) return std::min(isa, Isa::kAvx512);
#endif
  return isa;
}

bool native_serves(const GemmShape& shape, Isa limit) {
  const bool operand = shape.operand == DType::kBF16 ||
                       (shape.operand == DType::kF32 && shape.storage == WeightStorage::kPlain);
  const bool out = shape.out == DType::kF32 || shape.out == DType::kBF16;
  return operand && out && gemm_kernels(limit) != nullptr;
}

WeightForm native_form(const GemmShape& shape, Isa limit) {
  assert(native_serves(shape, limit));
  const PanelForm form = panel_form(shape, *gemm_kernels(limit));
  return {.dtype = form.kind == PanelKind::kBfp8 ? "bfp8_b" : std::string(to_string(shape.operand)),
          .layout = form.layout(),
          .bytes = static_cast<std::size_t>(form.bytes())};
}

void native_pack(const TensorView& weight, const GemmShape& shape, std::span<std::byte> out, Isa limit) {
  assert(native_serves(shape, limit) && weight.dtype == shape.operand);
  pack_panels_of(weight, panel_form(shape, *gemm_kernels(limit)), out);
}

std::unique_ptr<Gemm> make_native_gemm(const GemmShape& shape, const GemmOperands& operands, int threads,
                                       Isa limit) {
  assert(native_serves(shape, limit));
  return std::make_unique<NativeGemm>(shape, operands, threads, *gemm_kernels(limit));
}

}  // namespace sinew::cpu
