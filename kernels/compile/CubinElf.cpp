// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/CubinElf.h"

#include <algorithm>
#include <cstring>
#include <elf.h>

namespace mgpu::kernels {

namespace {

class Reader {
public:
  explicit Reader(std::span<const std::byte> bytes) : bytes(bytes) {}

  template <typename T>
  T at(uint64_t offset) const {
    T value{};
    if (offset + sizeof value <= bytes.size())
      std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  }
  std::string text(uint64_t offset) const {
    std::string result;
    for (; offset < bytes.size() && char(bytes[offset]); ++offset)
      result.push_back(char(bytes[offset]));
    return result;
  }

private:
  std::span<const std::byte> bytes;
};

} // namespace

Cubin readCubin(std::span<const std::byte> bytes) {
  Cubin cubin;
  Reader file(bytes);
  auto header = file.at<Elf64_Ehdr>(0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_machine != 190) // EM_CUDA
    return cubin;
  cubin.architecture = header.e_flags >> 8 & 0xff;
  std::vector<Elf64_Shdr> sections;
  for (unsigned k = 0; k < header.e_shnum; ++k)
    sections.push_back(
        file.at<Elf64_Shdr>(header.e_shoff + k * header.e_shentsize));
  if (header.e_shstrndx >= sections.size())
    return cubin;
  auto nameOf = [&](const Elf64_Shdr &section) {
    return file.text(sections[header.e_shstrndx].sh_offset + section.sh_name);
  };
  std::vector<std::string> symbols;
  for (const Elf64_Shdr &section : sections)
    if (section.sh_type == SHT_SYMTAB && section.sh_link < sections.size())
      for (uint64_t at = 0;
           at < std::min<uint64_t>(section.sh_size, bytes.size());
           at += sizeof(Elf64_Sym))
        symbols.push_back(
            file.text(sections[section.sh_link].sh_offset +
                      file.at<Elf64_Sym>(section.sh_offset + at).st_name));
  auto after = [](const std::string &name, const char *prefix) {
    return name.rfind(prefix, 0) == 0 ? name.substr(std::strlen(prefix)) : "";
  };
  for (const Elf64_Shdr &section : sections)
    if (std::string entry = after(nameOf(section), ".text."); !entry.empty())
      cubin.entries[entry];
  for (const Elf64_Shdr &section : sections) {
    std::string name = nameOf(section);
    if (std::string entry = after(name, ".nv.shared."); !entry.empty())
      if (cubin.entries.count(entry))
        cubin.entries[entry].sharedBytes = uint32_t(section.sh_size);
    if (name.rfind(".nv.info", 0) != 0)
      continue;
    std::string entry = after(name, ".nv.info.");
    uint64_t at = std::min<uint64_t>(section.sh_offset, bytes.size());
    uint64_t end = at + std::min<uint64_t>(section.sh_size, bytes.size() - at);
    while (at + 4 <= end) {
      auto format = file.at<uint8_t>(at), attribute = file.at<uint8_t>(at + 1);
      auto size = file.at<uint16_t>(at + 2);
      uint64_t payload = at + 4;
      at = payload + (format == 4 ? size : 0); // others keep it in `size`
      if (format != 4)
        continue;
      if (attribute == 0x2f) { // registers of a symbol
        auto symbol = file.at<uint32_t>(payload);
        if (symbol < symbols.size() && cubin.entries.count(symbols[symbol]))
          cubin.entries[symbols[symbol]].registers =
              file.at<uint32_t>(payload + 4);
      } else if ((attribute == 0x05 || attribute == 0x10) &&
                 cubin.entries.count(entry)) { // at most, or exactly
        cubin.entries[entry].maxThreads = file.at<uint32_t>(payload) *
                                          file.at<uint32_t>(payload + 4) *
                                          file.at<uint32_t>(payload + 8);
      } else if (attribute == 0x17 && cubin.entries.count(entry)) {
        auto ordinal = file.at<uint32_t>(payload + 4) & 0xffff;
        auto &parameters = cubin.entries[entry].parameters;
        parameters.resize(std::max<size_t>(parameters.size(), ordinal + 1));
        parameters[ordinal] = {file.at<uint32_t>(payload + 4) >> 16,
                               file.at<uint32_t>(payload + 8) >> 18};
      }
    }
  }
  return cubin;
}

} // namespace mgpu::kernels
