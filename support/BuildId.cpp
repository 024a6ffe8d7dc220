// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/BuildId.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <link.h>

namespace mgpu {

namespace {

struct Search {
  uintptr_t address = 0;
  std::string id;
};

} // namespace

/// The build id among the notes of one segment.
static std::string idIn(const char *notes, size_t bytes, size_t alignment) {
  auto aligned = [&](size_t size) {
    size_t unit = alignment == 8 ? 8 : 4;
    return (size + unit - 1) / unit * unit;
  };
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    if (note.n_namesz > bytes || note.n_descsz > bytes)
      return "";
    size_t description = aligned(sizeof note + note.n_namesz);
    size_t end = description + note.n_descsz;
    if (end > bytes)
      return "";
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes + sizeof note, "GNU", 4) == 0) {
      std::string text;
      for (size_t k = 0; k < note.n_descsz; ++k) {
        auto byte = static_cast<unsigned char>(notes[description + k]);
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
      }
      return text;
    }
    end = std::min(aligned(end), bytes);
    notes += end;
    bytes -= end;
  }
  return "";
}

static int visit(dl_phdr_info *object, size_t, void *data) {
  auto &search = *static_cast<Search *>(data);
  bool isHere = false;
  std::string id;
  for (int k = 0; k < object->dlpi_phnum; ++k) {
    const ElfW(Phdr) &segment = object->dlpi_phdr[k];
    uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD)
      isHere |=
          search.address >= begin && search.address - begin < segment.p_memsz;
    if (segment.p_type == PT_NOTE && id.empty())
      id = idIn(reinterpret_cast<const char *>(begin), segment.p_memsz,
                segment.p_align);
  }
  if (!isHere)
    return 0;
  search.id = std::move(id);
  return 1;
}

std::string buildIdOf(const void *address) {
  Search search{reinterpret_cast<uintptr_t>(address), {}};
  dl_iterate_phdr(visit, &search);
  return search.id;
}

} // namespace mgpu
