// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Printf.h"

#include "kernels/ptx/Machine.h"
#include "kernels/ptx/Opcodes.h"

namespace mgpu::kernels::ptx {

namespace {

/// A lane's argument: the local variable of the caller at `words[more + k]`.
uint64_t argument(Warp &warp, const Instr &i, uint32_t lane, uint32_t k) {
  const uint64_t size = warp.machine.program.localBytes;
  uint64_t value = 0;
  const uint32_t offset = warp.machine.program.words[i.more + k * 2];
  const uint32_t bytes = warp.machine.program.words[i.more + k * 2 + 1];
  std::memcpy(&value,
              warp.block.local.data() +
                  (uint64_t(warp.index) * lanes + lane) * size + offset,
              bytes);
  return value;
}

bool readBytes(Warp &warp, const Instr &i, uint32_t lane, uint64_t address,
               uint32_t bytes, void *out) {
  const uint32_t kept = warp.mask;
  uint64_t addresses[lanes] = {};
  std::byte *at[lanes];
  addresses[lane] = address;
  warp.mask = 1u << lane;
  const bool isReached = warp.reach(i, addresses, bytes, Touch::Read, at);
  warp.mask = kept;
  if (isReached)
    std::memcpy(out, at[lane], bytes);
  return isReached;
}

std::string textAt(Warp &warp, const Instr &i, uint32_t lane,
                   uint64_t address) {
  std::string out;
  for (char c = 1; out.size() < 4096;) {
    if (!readBytes(warp, i, lane, address + out.size(), 1, &c) || c == '\0')
      break;
    out.push_back(c);
  }
  return out;
}

/// One conversion of a format, from its '%' on, with the value at `at` of the
/// list of arguments, which are aligned to their size.
std::string converted(Warp &warp, const Instr &i, uint32_t lane,
                      const std::string &spec, uint64_t list, uint64_t &at) {
  const char kind = spec.back();
  if (kind == '%')
    return "%";
  const bool isFloat = std::strchr("eEfFgGaA", kind) != nullptr;
  const bool isLong = spec.find_first_of("lzjt") != spec.npos;
  const bool isWide = isFloat || isLong || kind == 's' || kind == 'p';
  const uint32_t bytes = isWide ? 8 : 4;
  at = (at + bytes - 1) / bytes * bytes;
  uint64_t value = 0;
  if (!readBytes(warp, i, lane, list + at, bytes, &value))
    return {};
  at += bytes;
  std::string plain;
  for (char c : spec)
    if (!std::strchr("hlLzjt", c))
      plain.push_back(c);
  plain.pop_back();
  char buffer[512];
  if (kind == 's') {
    std::snprintf(buffer, sizeof buffer, (plain + "s").c_str(),
                  textAt(warp, i, lane, value).c_str());
  } else if (isFloat) {
    std::snprintf(buffer, sizeof buffer, (plain + kind).c_str(),
                  std::bit_cast<double>(value));
  } else if (kind == 'c') {
    std::snprintf(buffer, sizeof buffer, (plain + "c").c_str(), int(value));
  } else if (kind == 'p') {
    std::snprintf(buffer, sizeof buffer, "%#llx", (unsigned long long)value);
  } else {
    if ((kind == 'd' || kind == 'i') && !isLong)
      value = uint64_t(int64_t(int32_t(value)));
    std::snprintf(buffer, sizeof buffer, (plain + "ll" + kind).c_str(),
                  (unsigned long long)value);
  }
  return buffer;
}

void printOne(Warp &warp, const Instr &i, uint32_t lane) {
  const std::string format = textAt(warp, i, lane, argument(warp, i, lane, 0));
  const uint64_t list = argument(warp, i, lane, 1);
  std::string out;
  uint64_t at = 0;
  for (size_t k = 0; k < format.size() && !warp.machine.error; ++k) {
    const size_t end = format.find_first_of("diouxXcseEfFgGaAp%", k + 1);
    // Nothing but flags, a width and a length may be between.
    const bool isSpec =
        format[k] == '%' && end != format.npos && end - k < 12 &&
        format.find_first_not_of("-+ #0123456789.hlzjt", k + 1) == end;
    if (!isSpec) {
      out.push_back(format[k]);
      continue;
    }
    out += converted(warp, i, lane, format.substr(k, end - k + 1), list, at);
    k = end;
  }
  warp.machine.print(out);
}

void setResult(Warp &warp, const Instr &i, uint32_t lane, uint64_t value) {
  if (i.d == noPlace)
    return;
  std::memcpy(warp.block.local.data() +
                  (uint64_t(warp.index) * lanes + lane) *
                      warp.machine.program.localBytes +
                  i.d,
              &value, std::min<uint32_t>(i.bytes, 8));
}

void vprintf(Warp &warp, const Instr &i) {
  for (uint32_t lane = 0; lane < lanes; ++lane)
    if ((warp.mask >> lane & 1) && !warp.machine.error) {
      printOne(warp, i, lane);
      setResult(warp, i, lane, 0);
    }
}

void assertFail(Warp &warp, const Instr &i) {
  const auto lane = uint32_t(std::countr_zero(warp.mask));
  const std::string what = textAt(warp, i, lane, argument(warp, i, lane, 0));
  const std::string file = textAt(warp, i, lane, argument(warp, i, lane, 1));
  warp.fail(fmt::format("the assertion `{}` of {}:{} does not hold", what, file,
                        argument(warp, i, lane, 2)),
            int(lane));
}

struct SystemCall {
  std::string_view name;
  Run run;
  uint32_t arguments;
};
constexpr SystemCall calls[] = {{"vprintf", vprintf, 2},
                                {"__assertfail", assertFail, 3},
                                {"__assert_fail", assertFail, 3}};

} // namespace

Run systemCall(std::string_view name) {
  for (const SystemCall &each : calls)
    if (each.name == name)
      return each.run;
  return nullptr;
}

void decodeSystemCall(Decoder &d, Run run, const Operand &results,
                      const Operand &arguments) {
  uint32_t needed = 0;
  for (const SystemCall &each : calls)
    if (each.run == run)
      needed = each.arguments;
  if (arguments.parts.size() < needed)
    return d.refuse("an argument is missing");
  std::vector<uint32_t> words;
  for (const Operand &part : arguments.parts) {
    auto at = d.locate(part);
    if (!at || at->space != Space::Local) {
      at = d.temporary(8);
      const auto type = d.declared(&part);
      if (type)
        at->bytes = std::min(bytesOf(*type), 8u);
      emitTransfer(d, part, *at, false);
    }
    words.push_back(uint32_t(at->offset));
    words.push_back(uint32_t(std::min<uint64_t>(at->bytes, 8)));
  }
  d.instr.d = noPlace;
  if (!results.parts.empty())
    if (const auto at = d.locate(results.parts[0]);
        at && at->space == Space::Local) {
      d.instr.d = uint32_t(at->offset);
      d.instr.bytes = uint8_t(std::min<uint64_t>(at->bytes, 8));
    }
  d.instr.more = d.words(words);
  d.emit(run);
}

} // namespace mgpu::kernels::ptx
