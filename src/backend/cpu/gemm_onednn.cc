// The one file that knows oneDNN (2.6; its C++ interface changed in 3.x). Weights are packed once in the
// format that the library asks for; bias, GELU and the residual are post-ops. The library was built with
// OpenMP: primitives are made for one thread and run side by side on our own pool, so no OpenMP team ever
// exists (libgomp's spinning workers would fight with ours for the cores).
#include <dnnl.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdlib>
#include <dnnl.hpp>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/gemm_onednn.h"
#include "base/checked.h"
#include "base/error.h"

// libgomp's own names: omp.h comes with g++ but not with clang, and these two are all that is needed of it.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int);
}

namespace sinew::cpu {
namespace {

using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;

/// While it lives, primitives made by this thread are serial.
class SerialOpenMp {
 public:
  SerialOpenMp() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~SerialOpenMp() { omp_set_num_threads(before_); }
  SerialOpenMp(const SerialOpenMp&) = delete;
  SerialOpenMp& operator=(const SerialOpenMp&) = delete;

 private:
  int before_;
};

const dnnl::engine& engine() {
  static const dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}

dnnl::memory::data_type to_dnnl(DType dtype) {
  return dtype == DType::kBF16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

dnnl::memory::desc row_major(std::int64_t rows, std::int64_t columns, DType dtype) {
  return {{rows, columns}, to_dnnl(dtype), Tag::ab};
}

dnnl::matmul::primitive_desc describe_product(const GemmShape& s, std::int64_t rows,
                                              const dnnl::memory::desc& weight) {
  dnnl::post_ops post;
  // oneDNN's gelu_erf is the exact form, with an erf good to 1.5e-7 (Abramowitz and Stegun 7.1.26).
  if (s.gelu) post.append_eltwise(1.0F, dnnl::algorithm::eltwise_gelu_erf, 0, 0);
  if (s.residual) post.append_binary(dnnl::algorithm::binary_add, row_major(rows, s.n, DType::kF32));
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(post);
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto x = row_major(rows, s.k, s.operand);
  const auto out = row_major(rows, s.n, s.out);
  const auto description = s.bias ? dnnl::matmul::desc(x, weight, row_major(1, s.n, DType::kF32), out)
                                  : dnnl::matmul::desc(x, weight, out);
  return {description, attributes, engine()};
}

Error no_product(const GemmShape& s, const dnnl::error& error) {
  return {ErrorCode::kUnsupported,
          fmt::format("oneDNN has no {} product [{},{}] x [{},{}] for this processor ({})",
                      to_string(s.operand), s.m, s.k, s.k, s.n, error.message),
          s.operand == DType::kBF16 ? "use --policy f32" : ""};
}

/// The layout that oneDNN wants the weight [K,N] in for all m rows at once.
dnnl::memory::desc wanted_weight(const GemmShape& s) {
  const SerialOpenMp serial;
  if (s.storage != WeightStorage::kPlain)
    throw fail(ErrorCode::kUnsupported, "oneDNN has no products with bfp8 weights");
  try {
    return describe_product(s, s.m, {{s.k, s.n}, to_dnnl(s.operand), Tag::any}).weights_desc();
  } catch (const dnnl::error& error) {
    throw no_product(s, error);
  }
}

std::string dims_text(const dnnl_dim_t* dims, int count) {
  return fmt::format("{}", fmt::join(dims, dims + count, ","));
}

/// All fields of a layout that decide where elements lie: "oneDNN padded 1280,3840 strides ... blocks
/// 16a64b2a".
std::string layout_text(const dnnl::memory::desc& description) {
  const dnnl_memory_desc_t& d = description.data;
  const dnnl_blocking_desc_t& b = d.format_desc.blocking;
  std::string blocks;
  for (int i = 0; i < b.inner_nblks; ++i)
    blocks += fmt::format("{}{}", b.inner_blks[i], static_cast<char>('a' + b.inner_idxs[i]));
  if (d.format_kind != dnnl_blocked || d.extra.flags != 0 || d.offset0 != 0)
    throw fail(ErrorCode::kUnsupported, "oneDNN asks for a weight layout that is not blocked");
  return fmt::format("oneDNN, padded {}, strides {}, blocks {}", dims_text(d.padded_dims, d.ndims),
                     dims_text(b.strides, d.ndims), blocks.empty() ? "none" : blocks);
}

class OneDnnGemm final : public Gemm {
 public:
  OneDnnGemm(const GemmShape& shape, const GemmOperands& operands, int threads) {
    const dnnl::memory::desc layout = wanted_weight(shape);
    const SerialOpenMp serial;
    const dnnl::memory packed(layout, engine(), const_cast<std::byte*>(operands.weight));
    // Rows are dealt out evenly; fewer than eight rows a slice would only read the weights more often.
    const std::int64_t count = std::max<std::int64_t>(1, std::min<std::int64_t>(threads, shape.m / 8));
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t first = shape.m * i / count;
      add_slice(shape, first, shape.m * (i + 1) / count - first, packed, operands);
    }
  }

  /// A slice's scratch is its own, whoever runs it: what a thread has once may serve one slice only.
  ScratchSize scratch() const override { return {.shared = scratch_bytes_ * slices_.size()}; }
  std::string implementation() const override { return implementation_; }
  void bind_scratch(const Scratch& scratch) override {
    if (scratch_bytes_ == 0) return;
    for (std::size_t i = 0; i < slices_.size(); ++i)
      slices_[i].memories[kScratch].set_data_handle(scratch.shared + i * scratch_bytes_);
  }
  void run(ThreadPool& pool) noexcept override {
    pool.parallel_for(static_cast<int>(slices_.size()), [this](int slice, int) { run_slice(slice); });
  }

 private:
  void run_slice(int index) noexcept {
    Slice& slice = slices_[static_cast<std::size_t>(index)];
    // The C call: the C++ wrapper would build a map and a vector each time.
    const auto status = dnnl_primitive_execute(slice.primitive.get(), slice.stream.get(), slice.count,
                                               slice.arguments.data());
    if (status != dnnl_success)
      std::abort();  // shapes and addresses were fixed when it was made: a bug, not an input
  }

  enum Slot : std::uint8_t { kX, kWeight, kOut, kBias, kResidual, kScratch, kSlots };
  struct Slice {
    dnnl::matmul primitive;
    dnnl::stream stream;
    std::array<dnnl::memory, kSlots> memories;
    std::array<dnnl_exec_arg_t, kSlots> arguments{};
    int count = 0;
  };

  void add_slice(const GemmShape& shape, std::int64_t first, std::int64_t rows, const dnnl::memory& packed,
                 const GemmOperands& operands) {
    const auto description = describe_product(shape, rows, packed.get_desc());
    implementation_ = description.impl_info_str();
    const std::size_t scratch = round_up(description.scratchpad_desc().get_size(), AlignedBuffer::kAlignment);
    scratch_bytes_ = std::max(scratch_bytes_, scratch);
    Slice slice;
    slice.primitive = dnnl::matmul(description);
    slice.stream = dnnl::stream(engine());
    const auto add = [&](Slot slot, int argument, dnnl::memory memory) {
      slice.memories[slot] = std::move(memory);
      slice.arguments[static_cast<std::size_t>(slice.count++)] = {argument, slice.memories[slot].get()};
    };
    const auto at = [&](const void* base, std::int64_t columns, DType dtype) {
      const auto offset = static_cast<std::size_t>(first * columns) * size_of(dtype);
      return static_cast<std::byte*>(const_cast<void*>(base)) + offset;
    };
    add(kX, DNNL_ARG_SRC,
        dnnl::memory(description.src_desc(), engine(), at(operands.x, shape.k, shape.operand)));
    add(kWeight, DNNL_ARG_WEIGHTS, packed);
    add(kOut, DNNL_ARG_DST,
        dnnl::memory(description.dst_desc(), engine(), at(operands.out, shape.n, shape.out)));
    if (shape.bias) {
      add(kBias, DNNL_ARG_BIAS,
          dnnl::memory(row_major(1, shape.n, DType::kF32), engine(), const_cast<float*>(operands.bias)));
    }
    if (shape.residual) {
      const int index = shape.gelu ? 1 : 0;
      add(kResidual, DNNL_ARG_ATTR_MULTIPLE_POST_OP(index) | DNNL_ARG_SRC_1,
          dnnl::memory(row_major(rows, shape.n, DType::kF32), engine(),
                       at(operands.residual, shape.n, DType::kF32)));
    }
    if (description.scratchpad_desc().get_size() > 0) {
      add(kScratch, DNNL_ARG_SCRATCHPAD,
          dnnl::memory(description.scratchpad_desc(), engine(), DNNL_MEMORY_NONE));
    }
    slices_.push_back(std::move(slice));
  }

  std::vector<Slice> slices_;
  std::size_t scratch_bytes_ = 0;  // of one slice
  std::string implementation_;
};

}  // namespace

bool onednn_serves(const GemmShape& shape) {
  try {
    wanted_weight(shape);
    return true;
  } catch (const Error&) {
    return false;
  }
}

WeightForm onednn_form(const GemmShape& shape) {
  const dnnl::memory::desc wanted = wanted_weight(shape);
  return {std::string(to_string(shape.operand)), layout_text(wanted), wanted.get_size()};
}

void onednn_pack(const TensorView& weight, const GemmShape& shape, std::span<std::byte> out) {
  const dnnl::memory::desc wanted = wanted_weight(shape);
  assert(out.size() == wanted.get_size());
  const SerialOpenMp serial;
  dnnl::memory packed(wanted, engine(), out.data());
  // The checkpoint stores [N,K]; the product wants [K,N]: the same bytes, strides exchanged.
  const dnnl::memory::desc stored({shape.k, shape.n}, to_dnnl(shape.operand), Dims{1, shape.k});
  dnnl::memory source(stored, engine(), const_cast<std::byte*>(weight.data));
  dnnl::stream stream(engine());
  dnnl::reorder(source, packed).execute(stream, source, packed);
  stream.wait();
}

std::unique_ptr<Gemm> make_onednn_gemm(const GemmShape& shape, const GemmOperands& operands, int threads) {
  try {
    return std::make_unique<OneDnnGemm>(shape, operands, threads);
  } catch (const dnnl::error& error) {
    throw no_product(shape, error);
  }
}

void onednn_limit_to_baseline() {
  // Asking what is in effect settles it, so it is asked only when the limit is settled already.
  if (dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41) != dnnl_success &&
      dnnl_get_effective_cpu_isa() != dnnl_cpu_isa_sse41) {
    throw fail(ErrorCode::kUnsupported,
               "{} has chosen its instruction set already and cannot be held to the baseline any more",
               onednn_version());
  }
}

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

}  // namespace sinew::cpu
