// The one EXIF field sinew reads: how the camera was held.
#pragma once

#include <cstddef>
#include <span>

namespace sinew {

/// Tag 0x0112 of the first directory of a TIFF block (the bytes after "Exif\0\0" in a JPEG's APP1, or a PNG's
/// eXIf chunk): 1 upright, 2 mirrored, 3 half turn, 4 flipped, 5 transposed, 6 needs a quarter turn
/// clockwise, 7 anti-transposed, 8 needs a quarter turn anti-clockwise. 1 when the block is damaged, the tag
/// absent or its value out of range: a broken side note does not cost the picture. Reads at most the first
/// directory, never outside `tiff`.
int exif_orientation(std::span<const std::byte> tiff);

}  // namespace sinew
