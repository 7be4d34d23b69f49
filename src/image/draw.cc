#include "image/draw.h"

#include <algorithm>
#include <cmath>

namespace sinew {
namespace {

/// Columns or rows [first, end) of an axis that the interval [low, high] touches; empty for NaN.
struct Span {
  int first = 0, end = 0;
};

Span span_of(double low, double high, int extent) {
  if (!(high >= low) || !(high >= 0) || !(low <= extent - 1)) return {};
  return {static_cast<int>(std::ceil(std::max(low, 0.0))),
          static_cast<int>(std::floor(std::min(high, extent - 1.0))) + 1};
}

/// Share of a pixel that a shape covers, from the distance of its centre to the shape's edge (negative
/// inside): a straight edge through a pixel. Shapes thinner than a pixel fade instead of vanishing.
double coverage(double distance_to_edge, double width) {
  return std::clamp(0.5 - distance_to_edge, 0.0, 1.0) * std::min(width, 1.0);
}

void blend(Image& image, int x, int y, const Colour& colour, double alpha) {
  if (!(alpha > 0)) return;
  alpha = std::min(alpha, 1.0);
  std::uint8_t* pixel = image.pixel(x, y);
  for (int c = 0; c < 3; ++c) {
    pixel[c] = static_cast<std::uint8_t>(std::lround(pixel[c] + (colour[c] - pixel[c]) * alpha));
  }
}

bool drawable(const Image& image, std::initializer_list<double> numbers) {
  if (image.width < 1 || image.height < 1) return false;
  return std::all_of(numbers.begin(), numbers.end(), [](double v) { return std::isfinite(v); });
}

struct Segment {
  double x0, y0, x1, y1;
};

/// The part of a segment inside [low_x, high_x] x [low_y, high_y] (Liang and Barsky), so that the rest deals
/// with moderate numbers. False when nothing is left.
bool clip(Segment& s, double low_x, double low_y, double high_x, double high_y) {
  const double dx = s.x1 - s.x0;
  const double dy = s.y1 - s.y0;
  if (!std::isfinite(dx) || !std::isfinite(dy)) return false;
  double enter = 0;
  double leave = 1;
  const double toward[4] = {-dx, dx, -dy, dy};
  const double room[4] = {s.x0 - low_x, high_x - s.x0, s.y0 - low_y, high_y - s.y0};
  for (int i = 0; i < 4; ++i) {
    if (toward[i] == 0) {
      if (room[i] < 0) return false;
    } else if (toward[i] < 0) {
      enter = std::max(enter, room[i] / toward[i]);
    } else {
      leave = std::min(leave, room[i] / toward[i]);
    }
  }
  if (enter > leave) return false;
  s = {s.x0 + enter * dx, s.y0 + enter * dy, s.x0 + leave * dx, s.y0 + leave * dy};
  return true;
}

double distance_to(const Segment& s, double x, double y) {
  const double dx = s.x1 - s.x0;
  const double dy = s.y1 - s.y0;
  const double length2 = dx * dx + dy * dy;
  const double t = length2 > 0 ? std::clamp(((x - s.x0) * dx + (y - s.y0) * dy) / length2, 0.0, 1.0) : 0.0;
  return std::hypot(x - (s.x0 + t * dx), y - (s.y0 + t * dy));
}

}  // namespace

void draw_line(Image& image, double x0, double y0, double x1, double y1, double width, const Colour& colour,
               double opacity) {
  if (!drawable(image, {x0, y0, x1, y1, width, opacity}) || width <= 0) return;
  const double reach = width / 2 + 0.5;
  Segment s{x0, y0, x1, y1};
  // The cut ends lie a reach outside, where their round caps are not seen.
  const double margin = reach + 1;
  if (!clip(s, -margin, -margin, image.width - 1 + margin, image.height - 1 + margin)) return;
  if (s.y0 > s.y1) s = {s.x1, s.y1, s.x0, s.y0};
  const Span rows = span_of(s.y0 - reach, s.y1 + reach, image.height);
  for (int y = rows.first; y < rows.end; ++y) {
    // Only columns near the part of the segment whose rows are within reach: a long diagonal costs its
    // length, not its box.
    double from = 0;
    double to = 1;
    if (s.y1 > s.y0) {
      from = std::clamp((y - reach - s.y0) / (s.y1 - s.y0), 0.0, 1.0);
      to = std::clamp((y + reach - s.y0) / (s.y1 - s.y0), 0.0, 1.0);
    }
    const double xa = s.x0 + from * (s.x1 - s.x0);
    const double xb = s.x0 + to * (s.x1 - s.x0);
    const Span columns = span_of(std::min(xa, xb) - reach, std::max(xa, xb) + reach, image.width);
    for (int x = columns.first; x < columns.end; ++x) {
      blend(image, x, y, colour, opacity * coverage(distance_to(s, x, y) - width / 2, width));
    }
  }
}

void draw_disc(Image& image, double x, double y, double radius, const Colour& colour, double opacity) {
  if (!drawable(image, {x, y, radius, opacity}) || radius <= 0) return;
  const double reach = radius + 0.5;
  const Span rows = span_of(y - reach, y + reach, image.height);
  const Span columns = span_of(x - reach, x + reach, image.width);
  for (int row = rows.first; row < rows.end; ++row) {
    for (int column = columns.first; column < columns.end; ++column) {
      const double distance = std::hypot(column - x, row - y) - radius;
      blend(image, column, row, colour, opacity * coverage(distance, 2 * radius));
    }
  }
}

void draw_box(Image& image, double x0, double y0, double x1, double y1, double width, const Colour& colour,
              double opacity) {
  if (!drawable(image, {x0, y0, x1, y1, width, opacity}) || width <= 0) return;
  if (x0 > x1) std::swap(x0, x1);
  if (y0 > y1) std::swap(y0, y1);
  const double reach = width / 2 + 0.5;
  const Span rows = span_of(y0 - reach, y1 + reach, image.height);
  const Span columns = span_of(x0 - reach, x1 + reach, image.width);
  for (int y = rows.first; y < rows.end; ++y) {
    const bool edge_row = std::abs(y - y0) <= reach || std::abs(y - y1) <= reach;
    for (int x = columns.first; x < columns.end; ++x) {
      if (!edge_row && x > x0 + reach && x < x1 - reach) {  // inside: on to the right edge
        x = std::max(x, static_cast<int>(std::ceil(std::min(x1 - reach, columns.end - 1.0))));
      }
      // Larger of the two axes' distances: corners stay square.
      const double outward = std::max(std::max(x0 - x, x - x1), std::max(y0 - y, y - y1));
      blend(image, x, y, colour, opacity * coverage(std::abs(outward) - width / 2, width));
    }
  }
}

}  // namespace sinew
