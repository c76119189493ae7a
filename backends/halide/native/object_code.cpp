#include "backends/halide/native/object_code.h"

#include <elf.h>

#include <cstdint>
#include <cstring>

namespace hoist::emission {
namespace {

// AMD64 Architecture Programmer's Manual, volume 4: EXTRQ is 66 0F 78 and 66 0F 79, INSERTQ F2 0F 78 and F2 0F 79,
// MOVNTSS F3 0F 2B and MOVNTSD F2 0F 2B, with a REX byte (40 to 4F) before the 0F for registers 8 to 15.
bool is_sse4a(const uint8_t* code, size_t bytes) {
  const uint8_t prefix = code[0];
  if (prefix != 0x66 && prefix != 0xf2 && prefix != 0xf3) return false;
  const size_t escape = bytes > 1 && (code[1] & 0xf0) == 0x40 ? 2 : 1;
  if (bytes < escape + 2 || code[escape] != 0x0f) return false;
  const uint8_t operation = code[escape + 1];
  return ((operation == 0x78 || operation == 0x79) && prefix != 0xf3) || (operation == 0x2b && prefix != 0x66);
}

// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: VDPBF16PS is EVEX.F3.0F38.W0 52,
// VCVTNEPS2BF16 EVEX.F3.0F38.W0 72 and VCVTNE2PS2BF16 EVEX.F2.0F38.W0 72; an EVEX prefix has four bytes.
bool is_bf16(const uint8_t* code, size_t bytes) {
  if (bytes < 5 || code[0] != 0x62 || (code[1] & 0x07) != 2 || (code[2] & 0x86) != 0x06) return false;
  const bool f3 = (code[2] & 0x01) == 0;
  return code[4] == 0x72 || (f3 && code[4] == 0x52);
}

bool may_need(std::string_view code) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(code.data());
  for (size_t i = 0; i < code.size(); ++i) {
    if (is_sse4a(bytes + i, code.size() - i) || is_bf16(bytes + i, code.size() - i)) return true;
  }
  return false;
}

template <typename T>
bool read(std::string_view from, uint64_t offset, T& out) {
  if (offset > from.size() || from.size() - offset < sizeof out) return false;
  std::memcpy(&out, from.data() + offset, sizeof out);
  return true;
}

}  // namespace

bool may_need_sse4a_or_bf16(std::string_view object) {
  Elf64_Ehdr header;
  if (!read(object, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != EM_X86_64 ||
      header.e_shentsize != sizeof(Elf64_Shdr))
    return true;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!read(object, header.e_shoff + i * sizeof section, section)) return true;
    if ((section.sh_flags & SHF_EXECINSTR) == 0 || section.sh_type == SHT_NOBITS) continue;
    if (section.sh_offset > object.size() || object.size() - section.sh_offset < section.sh_size) return true;
    if (may_need(object.substr(section.sh_offset, section.sh_size))) return true;
  }
  return false;
}

}  // namespace hoist::emission
