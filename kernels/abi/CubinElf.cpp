// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/abi/CubinElf.h"

#include "kernels/abi/LaunchForm.h"

#include <algorithm>
#include <charconv>
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
    if (offset <= bytes.size() && sizeof value <= bytes.size() - offset)
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

/// The sections and symbols of an ELF, as far as they lie in it.
struct Elf {
  struct Symbol {
    std::string name;
    Elf64_Sym entry;
  };
  explicit Elf(std::span<const std::byte> bytes)
      : file(bytes), bytes(bytes), header(file.at<Elf64_Ehdr>(0)) {
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
      return;
    for (unsigned k = 0; k < header.e_shnum; ++k)
      sections.push_back(
          file.at<Elf64_Shdr>(header.e_shoff + k * header.e_shentsize));
    for (const Elf64_Shdr &section : sections)
      if (section.sh_type == SHT_SYMTAB && section.sh_link < sections.size())
        readSymbols(section);
  }
  bool isCubin() const {
    return header.e_machine == 190 && // EM_CUDA
           header.e_shstrndx < sections.size();
  }
  std::string nameOf(const Elf64_Shdr &section) const {
    return file.text(sections[header.e_shstrndx].sh_offset + section.sh_name);
  }

  Reader file;
  std::span<const std::byte> bytes;
  Elf64_Ehdr header;
  std::vector<Elf64_Shdr> sections;
  std::vector<Symbol> symbols;

private:
  void readSymbols(const Elf64_Shdr &table) {
    const uint64_t size = std::min<uint64_t>(table.sh_size, bytes.size());
    for (uint64_t at = 0; at < size; at += sizeof(Elf64_Sym)) {
      const auto entry = file.at<Elf64_Sym>(table.sh_offset + at);
      symbols.push_back(
          {file.text(sections[table.sh_link].sh_offset + entry.st_name),
           entry});
    }
  }
};

std::string after(const std::string &name, std::string_view prefix) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : "";
}

/// Reads one attribute of section ".nv.info" or ".nv.info.ENTRY".
void readAttribute(const Elf &elf, const std::string &entry, uint8_t attribute,
                   uint64_t payload, Cubin &cubin) {
  const Reader &file = elf.file;
  const auto own = cubin.entries.find(entry);
  if (attribute == 0x2f) { // registers of a symbol
    const auto symbol = file.at<uint32_t>(payload);
    if (symbol >= elf.symbols.size())
      return;
    if (auto at = cubin.entries.find(elf.symbols[symbol].name);
        at != cubin.entries.end())
      at->second.registers = file.at<uint32_t>(payload + 4);
  } else if (own == cubin.entries.end()) {
    return;
  } else if (attribute == 0x05 || attribute == 0x10) { // at most, or exactly
    own->second.maxThreads = file.at<uint32_t>(payload) *
                             file.at<uint32_t>(payload + 4) *
                             file.at<uint32_t>(payload + 8);
  } else if (attribute == 0x17) {
    const auto ordinal = file.at<uint32_t>(payload + 4) & 0xffff;
    auto &parameters = own->second.parameters;
    parameters.resize(std::max<size_t>(parameters.size(), ordinal + 1));
    parameters[ordinal] = {file.at<uint32_t>(payload + 4) >> 16,
                           file.at<uint32_t>(payload + 8) >> 18};
  }
}

void readAttributes(const Elf &elf, const Elf64_Shdr &section,
                    const std::string &entry, Cubin &cubin) {
  const uint64_t size = elf.bytes.size();
  uint64_t at = std::min<uint64_t>(section.sh_offset, size);
  const uint64_t end = at + std::min<uint64_t>(section.sh_size, size - at);
  while (at + 4 <= end) {
    const auto format = elf.file.at<uint8_t>(at);
    const uint64_t payload = at + 4;
    if (format == 4)
      readAttribute(elf, entry, elf.file.at<uint8_t>(at + 1), payload, cubin);
    // Others keep what they say in place of its size.
    at = payload + (format == 4 ? elf.file.at<uint16_t>(at + 2) : 0);
  }
}

/// Constants that say how an entry is launched.
void readLaunchForms(const Elf &elf, Cubin &cubin) {
  constexpr uint64_t mostWords = 64;
  for (const auto &[name, symbol] : elf.symbols) {
    const auto entry = cubin.entries.find(after(name, launchFormPrefix));
    if (entry == cubin.entries.end() || symbol.st_shndx >= elf.sections.size())
      continue;
    const uint64_t first =
        elf.sections[symbol.st_shndx].sh_offset + symbol.st_value;
    const uint64_t words = symbol.st_size / sizeof(uint32_t);
    for (uint64_t k = 0; k < std::min(words, mostWords); ++k)
      entry->second.launchForm.push_back(
          elf.file.at<uint32_t>(first + k * sizeof(uint32_t)));
  }
}

/// Section ".note.nv.tkinfo" has ptxas's own words: "Cuda compilation tools,
/// release 13.0, V13.0.88".
uint32_t toolkitOf(const Elf &elf) {
  constexpr std::string_view before = ", release ";
  for (const Elf64_Shdr &section : elf.sections) {
    if (elf.nameOf(section) != ".note.nv.tkinfo" ||
        section.sh_offset > elf.bytes.size())
      continue;
    const auto bytes = elf.bytes.subspan(size_t(section.sh_offset));
    const std::string_view note(
        reinterpret_cast<const char *>(bytes.data()),
        std::min<uint64_t>(section.sh_size, bytes.size()));
    uint32_t major = 0;
    if (const size_t at = note.find(before); at != note.npos)
      std::from_chars(note.data() + at + before.size(),
                      note.data() + note.size(), major);
    return major;
  }
  return 0;
}

} // namespace

Cubin readCubin(std::span<const std::byte> bytes) {
  Cubin cubin;
  const Elf elf(bytes);
  if (!elf.isCubin())
    return cubin;
  cubin.architecture = elf.header.e_flags >> 8 & 0xff;
  cubin.toolkit = toolkitOf(elf);
  for (const Elf64_Shdr &section : elf.sections)
    if (std::string entry = after(elf.nameOf(section), ".text.");
        !entry.empty())
      cubin.entries[entry];
  for (const Elf64_Shdr &section : elf.sections) {
    const std::string name = elf.nameOf(section);
    if (auto entry = cubin.entries.find(after(name, ".nv.shared."));
        entry != cubin.entries.end())
      entry->second.sharedBytes = uint32_t(section.sh_size);
    if (name.starts_with(".nv.info"))
      readAttributes(elf, section, after(name, ".nv.info."), cubin);
  }
  readLaunchForms(elf, cubin);
  return cubin;
}

} // namespace mgpu::kernels
