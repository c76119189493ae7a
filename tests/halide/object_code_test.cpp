#include "backends/halide/native/object_code.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace hoist::emission {
namespace object_code_test {

// An object file with one section of code or data that holds these bytes.
std::string object_with(const std::vector<unsigned char>& bytes, bool code = true) {
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_machine = EM_X86_64;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shoff = sizeof header;
  header.e_shnum = 1;
  Elf64_Shdr section = {};
  section.sh_type = SHT_PROGBITS;
  section.sh_flags = code ? SHF_EXECINSTR | SHF_ALLOC : SHF_ALLOC;
  section.sh_offset = sizeof header + sizeof section;
  section.sh_size = bytes.size();
  std::string out(reinterpret_cast<const char*>(&header), sizeof header);
  out.append(reinterpret_cast<const char*>(&section), sizeof section);
  out.append(bytes.begin(), bytes.end());
  return out;
}

TEST(ObjectCode, InstructionsOfOtherProcessorsAreSeen) {
  const std::vector<std::pair<const char*, std::vector<unsigned char>>> foreign = {
      {"extrq $4, $8, %xmm1", {0x66, 0x0f, 0x78, 0xc1, 0x08, 0x04}},
      {"extrq %xmm9, %xmm10", {0x66, 0x45, 0x0f, 0x79, 0xd1}},
      {"insertq $4, $8, %xmm2, %xmm1", {0xf2, 0x0f, 0x78, 0xca, 0x08, 0x04}},
      {"movntsd %xmm0, (%rax)", {0xf2, 0x0f, 0x2b, 0x00}},
      {"movntss %xmm8, (%rax)", {0xf3, 0x44, 0x0f, 0x2b, 0x00}},
      {"vdpbf16ps %zmm2, %zmm1, %zmm0", {0x62, 0xf2, 0x76, 0x48, 0x52, 0xc2}},
      {"vcvtneps2bf16 %zmm0, %ymm1", {0x62, 0xf2, 0x7e, 0x48, 0x72, 0xc8}},
      {"vcvtne2ps2bf16 %zmm2, %zmm1, %zmm0", {0x62, 0xf2, 0x77, 0x48, 0x72, 0xc2}}};
  for (const auto& [name, bytes] : foreign) {
    std::vector<unsigned char> code = {0x90, 0x90};
    code.insert(code.end(), bytes.begin(), bytes.end());
    EXPECT_TRUE(may_need_sse4a_or_bf16(object_with(code))) << name;
    EXPECT_FALSE(may_need_sse4a_or_bf16(object_with(code, false))) << name << " as data";
  }
}

TEST(ObjectCode, InstructionsOfTheTargetAreNot) {
  const std::vector<std::pair<const char*, std::vector<unsigned char>>> own = {
      {"vpdpbusd %zmm2, %zmm1, %zmm0", {0x62, 0xf2, 0x75, 0x48, 0x50, 0xc2}},
      {"vfmadd231ps %zmm2, %zmm1, %zmm0", {0x62, 0xf2, 0x75, 0x48, 0xb8, 0xc2}},
      {"movntps %xmm0, (%rax)", {0x0f, 0x2b, 0x00}},
      {"movntpd %xmm0, (%rax)", {0x66, 0x0f, 0x2b, 0x00}},
      {"ret", {0xc3}}};
  for (const auto& [name, code] : own) EXPECT_FALSE(may_need_sse4a_or_bf16(object_with(code))) << name;
}

TEST(ObjectCode, WhatCannotBeReadMayNeedAnything) {
  const std::string whole = object_with({0xc3});
  EXPECT_TRUE(may_need_sse4a_or_bf16(""));
  EXPECT_TRUE(may_need_sse4a_or_bf16(whole.substr(0, whole.size() - 1)));
  EXPECT_TRUE(may_need_sse4a_or_bf16(whole.substr(0, sizeof(Elf64_Ehdr) + 8)));
  EXPECT_TRUE(may_need_sse4a_or_bf16("!<arch>\n" + whole));
}

}  // namespace object_code_test
}  // namespace hoist::emission
