// The one file that knows oneDNN (2.6; its C++ interface changed in 3.x). Weights are packed once in the
// format that the library asks for; bias, GELU and the residual are post-ops. The library was built with
// OpenMP: primitives are made for one thread and run side by side on our own pool, so no OpenMP team ever
// exists (libgomp's spinning workers would fight with ours for the cores).
#include <dnnl.h>

#include <array>
#include <dnnl.hpp>
#include <utility>
#include <vector>

#include "backend/cpu/gemm.h"
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

class OneDnnMatrix final : public PackedMatrix {
 public:
  OneDnnMatrix(const TensorView& weight, const GemmShape& shape) {
    const SerialOpenMp serial;
    const dnnl::memory::desc any({shape.k, shape.n}, to_dnnl(shape.operand), Tag::any);
    const auto wanted = describe_product(shape, shape.m, any).weights_desc();
    bytes_ = wanted.get_size();
    buffer_ = AlignedBuffer(bytes_);
    packed_ = dnnl::memory(wanted, engine(), buffer_.data());
    // The checkpoint stores [N,K]; the product wants [K,N]: the same bytes, strides exchanged.
    const dnnl::memory::desc stored({shape.k, shape.n}, to_dnnl(shape.operand), Dims{1, shape.k});
    dnnl::memory source(stored, engine(), const_cast<std::byte*>(weight.data));
    dnnl::stream stream(engine());
    dnnl::reorder(source, packed_).execute(stream, source, packed_);
    stream.wait();
  }
  std::size_t bytes() const override { return bytes_; }
  const dnnl::memory& memory() const { return packed_; }

 private:
  AlignedBuffer buffer_;
  dnnl::memory packed_;
  std::size_t bytes_ = 0;
};

class OneDnnGemm final : public Gemm {
 public:
  OneDnnGemm(const GemmShape& shape, std::shared_ptr<const PackedMatrix> weight, const GemmOperands& operands,
             int threads)
      : weight_(std::move(weight)) {
    const SerialOpenMp serial;
    const auto& packed = dynamic_cast<const OneDnnMatrix&>(*weight_).memory();
    // Rows are dealt out evenly; fewer than eight rows a slice would only read the weights more often.
    const std::int64_t count = std::max<std::int64_t>(1, std::min<std::int64_t>(threads, shape.m / 8));
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t first = shape.m * i / count;
      add_slice(shape, first, shape.m * (i + 1) / count - first, packed, operands);
    }
  }

  int slices() const override { return static_cast<int>(slices_.size()); }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  std::string implementation() const override { return implementation_; }
  void bind_scratch(std::byte* scratch, std::size_t stride) override {
    if (scratch_bytes_ == 0) return;
    for (std::size_t i = 0; i < slices_.size(); ++i)
      slices_[i].memories[kScratch].set_data_handle(scratch + i * stride);
  }
  void run(int index) noexcept override {
    Slice& slice = slices_[static_cast<std::size_t>(index)];
    // The C call: the C++ wrapper would build a map and a vector each time.
    const auto status = dnnl_primitive_execute(slice.primitive.get(), slice.stream.get(), slice.count,
                                               slice.arguments.data());
    if (status != dnnl_success)
      std::abort();  // shapes and addresses were fixed when it was made: a bug, not an input
  }

 private:
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
    scratch_bytes_ = std::max(scratch_bytes_, description.scratchpad_desc().get_size());
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

  std::shared_ptr<const PackedMatrix> weight_;
  std::vector<Slice> slices_;
  std::size_t scratch_bytes_ = 0;
  std::string implementation_;
};

}  // namespace

std::shared_ptr<const PackedMatrix> pack_matrix(const TensorView& weight, const GemmShape& shape) {
  try {
    return std::make_shared<OneDnnMatrix>(weight, shape);
  } catch (const dnnl::error& error) {
    throw no_product(shape, error);
  }
}

bool pack_serves(const PackedMatrix& packed, const GemmShape& shape) {
  const SerialOpenMp serial;
  try {
    const dnnl::memory::desc any({shape.k, shape.n}, to_dnnl(shape.operand), Tag::any);
    return describe_product(shape, shape.m, any).weights_desc() ==
           dynamic_cast<const OneDnnMatrix&>(packed).memory().get_desc();
  } catch (const dnnl::error&) {
    return false;
  }
}

std::unique_ptr<Gemm> make_gemm(const GemmShape& shape, std::shared_ptr<const PackedMatrix> weight,
                                const GemmOperands& operands, int threads) {
  try {
    return std::make_unique<OneDnnGemm>(shape, std::move(weight), operands, threads);
  } catch (const dnnl::error& error) {
    throw no_product(shape, error);
  }
}

std::string gemm_library() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

bool has_bf16_product() {
  const GemmShape shape{.m = 16, .n = 64, .k = 64, .operand = DType::kBF16, .out = DType::kF32};
  try {
    const dnnl::memory::desc any({shape.k, shape.n}, to_dnnl(shape.operand), Tag::any);
    describe_product(shape, shape.m, any);
    return true;
  } catch (const dnnl::error&) {
    return false;
  }
}

}  // namespace sinew::cpu
