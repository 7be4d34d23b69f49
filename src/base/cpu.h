// What the processor can do.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace sinew {

/// Instruction sets that kernels are written for; each includes the ones before it.
enum class Isa { kBaseline, kAvx2, kAvx512, kAvx512Vnni, kAvx512Bf16, kAmx };
/// All of them, ascending.
inline constexpr std::array kAllIsas = {Isa::kBaseline,   Isa::kAvx2,       Isa::kAvx512,
                                        Isa::kAvx512Vnni, Isa::kAvx512Bf16, Isa::kAmx};

/// The best Isa of this processor and operating system (avx2 with FMA and F16C; avx512 with F, BW, DQ, VL;
/// amx with tiles of bf16 and int8).
Isa best_isa();
/// True when, with instruction sets up to `limit`, a bf16 dot product does twice the work of an f32 FMA in
/// the same time: AMX, or AVX512-BF16 outside Intel, whose cores issue one vdpbf16ps where they issue two
/// FMAs (uops.info: Cooper Lake, Sapphire Rapids), so that bf16 gains nothing there and conversions lose.
bool bf16_doubles_products(Isa limit = best_isa());
/// "baseline", "avx2", "avx512", "avx512-vnni", "avx512-bf16", "amx"
std::string_view to_string(Isa isa);
/// The inverse of to_string; nothing for an unknown word.
std::optional<Isa> parse_isa(std::string_view word);
/// The processor's name as the system gives it, or "unknown".
std::string cpu_name();
/// Resident memory of this process in bytes, now; 0 when the system does not say.
std::size_t resident_bytes();
/// Peak resident memory of this process in bytes.
std::size_t peak_resident_bytes();

}  // namespace sinew
