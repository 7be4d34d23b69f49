// sinew crop IMAGE --box ... --out X.png|X.safetensors
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/support.h"
#include "hand/boxes.h"
#include "image/crop.h"
#include "io/image_codec.h"
#include "io/safetensors.h"

namespace sinew::cli {
namespace {

struct Options {
  std::string image;
  std::string box;
  std::string crop = "pillow";
  std::string out;
  double rescale = 2.0;
  bool square = false;
};

/// `image` [1,3,rows,columns] f32 normalised, as `sinew run` takes it; `input.u8` beside it while the pixels
/// are 8-bit.
void write_tensors(const std::string& path, const Crop& crop, const CropGeometry& geometry) {
  const Shape shape = {1, 3, crop.rows, crop.columns};
  Tensor image(DType::kF32, shape);
  normalise(crop, image.as<float>().data());
  Tensor center = Tensor::of<float>({1, 2}, std::array{geometry.center_x, geometry.center_y});
  Tensor size = Tensor::of<double>({1}, std::array{geometry.box_size});
  std::map<std::string, TensorView> tensors = {{"image", image}, {"box_center", center}, {"box_size", size}};
  Tensor bytes(DType::kU8, shape);
  if (crop.is_u8()) {
    to_chw_u8(crop, bytes.as<std::uint8_t>().data());
    tensors.emplace("input.u8", bytes);
  }
  write_safetensors(path, tensors);
}

int run(const Options& options) {
  const bool tensors = std::filesystem::path(options.out).extension() == ".safetensors";
  std::optional<HandBox> box;
  if (!options.box.empty()) box = parse_box(options.box);
  const Image frame = read_image(options.image);
  if (!box) {
    fmt::print(stderr, "sinew: {}: no box given, taking the whole image\n", options.image);
    box = HandBox{0, 0, static_cast<double>(frame.width), static_cast<double>(frame.height), true};
  }
  check_box_of(options.image, *box, frame);
  const CropGeometry geometry = crop_geometry(*box, options.rescale);
  const Crop cut = crop(parse_crop(options.crop), frame, geometry, box->is_right, options.square);
  if (tensors) {
    write_tensors(options.out, cut, geometry);
  } else {
    write_image(options.out, to_image(cut));
  }
  return 0;
}

}  // namespace

std::function<int()> declare_crop(Command& command) {
  const auto options = std::make_shared<Options>();
  command.positional("IMAGE", options->image, "JPEG or PNG");
  command.option("--box", options->box, "x1,y1,x2,y2[,left|right] in pixels; default: the whole image");
  command.choice("--crop", options->crop, kCropWords, "The reference port's crop, or the original demo's");
  command.option("--rescale", options->rescale, "Side of the crop relative to the box");
  command.flag("--square", options->square, "All 256 columns instead of the 192 that the network sees");
  command.required("--out", options->out, "X.png, X.jpg, or X.safetensors as `sinew run` takes it");
  return [options] { return run(*options); };
}

}  // namespace sinew::cli
