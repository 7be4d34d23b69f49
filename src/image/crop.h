// From a frame and a hand box to the network's 256 x 192 crop: the reference port's rule (Pillow) and the
// original demo's (OpenCV).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/image.h"
#include "tensor/tensor.h"

namespace sinew {

inline constexpr int kCropSide = 256;         // rows, and columns of the square crop
inline constexpr int kCropColumns = 192;      // the network sees columns 32..223 of the square
inline constexpr int kMaxSquareSide = 65536;  // of a crop in the frame, pixels
/// Channel means and deviations (spec hamer 2.3), times 255.
inline constexpr double kImageMean[3] = {0.485, 0.456, 0.406};
inline constexpr double kImageStd[3] = {0.229, 0.224, 0.225};
/// Rounded means: pad colour of the port's crop and offsets of the u8 input path (spec hamer 3.2).
inline constexpr std::uint8_t kGreyPad[3] = {124, 116, 104};

/// A hand box in pixels of the frame, x2 and y2 exclusive, and the side of the hand.
struct HandBox {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  bool is_right = true;
};

/// Throws Error (kUsage) for NaN or infinite coordinates, x2 <= x1 or y2 <= y1, or a box that does not touch
/// the frame.
void check_box(const HandBox& box, int frame_width, int frame_height);

/// Throws Error (kUsage) for a frame without pixels. Every crop checks it.
void check_frame(const Image& frame);

/// Where a crop lies in its frame (spec hamer 3.1 steps 1, 2). Not mirrored.
struct CropGeometry {
  float center_x = 0, center_y = 0;
  double box_size = 0;  // side of the square in pixels: max(4w/3, h) of the rescaled box
};
/// `rescale` is the demo's rho, 2.0 by default. Float32 steps as the original. Throws Error (kUsage) for a
/// rescale that is not finite and positive, (kLimit) when the square's side exceeds 65536 pixels.
CropGeometry crop_geometry(const HandBox& box, double rescale);

enum class CropKind : std::uint8_t { kPillow, kOpenCV };
/// "pillow", "opencv"; nothing for another word.
std::optional<CropKind> parse_crop_kind(std::string_view word);

/// The pixels of a crop, RGB interleaved, rows x columns, columns = 256 or 192. 8-bit unless the frame was
/// blurred first.
struct Crop {
  int rows = kCropSide;
  int columns = kCropColumns;
  std::vector<std::uint8_t> u8;  // rows*columns*3, empty when blurred
  std::vector<float>
      f32;  // rows*columns*3 in 0..255, only when the frame was blurred (OpenCV crop, box_size > 563.2)
  bool is_u8() const { return f32.empty(); }
};

// All crops throw Error: kUsage (an empty frame, or for crop_opencv a square that vanishes in float32),
// kLimit (a side above kMaxSquareSide or a centre absurdly far away). A square may lie outside the frame in
// part or altogether.

/// The reference port's crop: integer square (at least one pixel), grey pad, Pillow BILINEAR box resize,
/// mirror for left hands (spec hamer 3.2).
Crop crop_pillow(const Image& frame, const CropGeometry& geometry, bool is_right, bool full_square = false);
/// The same for an explicit integer square (the goldens' squareN cases).
Crop crop_pillow_square(const Image& frame, int x0, int y0, int side, const std::uint8_t pad[3],
                        bool is_right, bool full_square = false);
/// The original demo's crop: Gaussian blur of the frame for large boxes, OpenCV 4.6 fixed-point bilinear
/// warp, black outside (spec hamer 3.1 steps 3 to 6).
Crop crop_opencv(const Image& frame, const CropGeometry& geometry, bool is_right, bool full_square = false);
Crop crop(CropKind kind, const Image& frame, const CropGeometry& geometry, bool is_right,
          bool full_square = false);

/// Channel statistics as fractions of 255; the published ones unless a model's configuration has others.
struct PixelNormalisation {
  std::array<double, 3> mean = {kImageMean[0], kImageMean[1], kImageMean[2]};
  std::array<double, 3> std = {kImageStd[0], kImageStd[1], kImageStd[2]};
};
/// (x - 255 mean)/(255 std) in float32, channel-major: writes 3*rows*columns floats (spec hamer 3.1 step 8).
void normalise(const Crop& crop, float* chw, const PixelNormalisation& statistics = {});
/// Channel-major copy of an 8-bit crop: writes 3*rows*columns bytes. Asserts is_u8().
void to_chw_u8(const Crop& crop, std::uint8_t* chw);
/// The 8-bit pixels behind a normalised [3,rows,columns] tensor, channel-major too. Takes the values of
/// float32 arithmetic (NumPy 1, normalise()) and those of float64 rounded once (NumPy 2). Throws Error
/// (kMismatch) naming the first element that is neither.
void denormalise_exact(const float* chw, std::int64_t rows, std::int64_t columns, std::uint8_t* out);
/// The crop as a picture (blurred ones rounded to nearest).
Image to_image(const Crop& crop);

}  // namespace sinew
