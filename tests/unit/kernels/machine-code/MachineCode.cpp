// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "MachineCode.h"

#include "kernels/abi/CubinElf.h"
#include "kernels/compile/CompileTexts.h"
#include "pipeline/compiler/KernelBuild.h"
#include "planner/dag/LaunchFacts.h"
#include "tests/unit/import/ImportText.h"
#include "tests/unit/kernels/CudaTwin.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <fmt/format.h>
#include <map>

namespace mgpu::kernels {

static const std::map<unsigned, const char *> opcodes = {
    {0x181, "LDG"},     {0x186, "STG"},    {0x184, "LDS"},
    {0x188, "STS"},     {0x183, "LDL"},    {0x187, "STL"},
    {0x180, "LD"},      {0x185, "ST"},     {0x023, "FFMA"},
    {0x020, "FMUL"},    {0x021, "FADD"},   {0x009, "FMNMX"},
    {0x108, "MUFU"},    {0x03e, "F2FP"},   {0x144, "CALL"},
    {0x11d, "BAR"},     {0x189, "SHFL"},   {0x0ca, "R2UR"},
    {0x147, "BRA"},     {0x14d, "EXIT"},   {0x118, "NOP"},
    {0x02e, "ACQBULK"}, {0x1bc, "UBLKPF"}, {0x1ae, "LDGSTS"},
    {0x1b4, "UTMALDG"}, {0x1a8, "ATOMG"},  {0x18e, "RED"}};
static constexpr const char *widths[] = {"8",  "8",  "16",  "16",
                                         "32", "64", "128", "?"};

static bool isAccess(std::string_view name) {
  return name == "LDG" || name == "STG" || name == "LDS" || name == "STS" ||
         name == "LDL" || name == "STL" || name == "LD" || name == "ST";
}

static std::string nameOf(uint64_t low, uint64_t high) {
  auto known = opcodes.find(unsigned(low & 0x1ff));
  if (known == opcodes.end())
    return "?";
  std::string name = known->second;
  if (!isAccess(name))
    return name;
  const bool passes = name == "LDG" && (high >> 22 & 1);     // L1::no_allocate
  const bool isConstant = name == "LDG" && (high >> 15 & 1); // ld.global.nc
  return name + "." + widths[high >> 9 & 7] + (passes ? ".NA" : "") +
         (isConstant ? ".NC" : "");
}

static bool isOf(std::string_view instruction, std::string_view name) {
  return instruction == name ||
         (instruction.starts_with(name) && instruction[name.size()] == '.');
}

size_t MachineCode::count(std::string_view name) const {
  return size_t(std::count_if(instructions.begin(), instructions.end(),
                              [&](auto &each) { return isOf(each, name); }));
}

size_t MachineCode::constants() const {
  return size_t(
      std::count_if(instructions.begin(), instructions.end(),
                    [](auto &each) { return each.ends_with(".NC"); }));
}

size_t MachineCode::bits(std::string_view name) const {
  size_t sum = 0;
  for (const std::string &each : instructions)
    if (isOf(each, name) && each.size() > name.size())
      sum += std::stoul(each.substr(name.size() + 1));
  return sum;
}

size_t MachineCode::first(std::string_view name) const {
  return size_t(std::find_if(instructions.begin(), instructions.end(),
                             [&](auto &each) { return isOf(each, name); }) -
                instructions.begin());
}

MachineCode MachineCode::before(std::string_view name) const {
  MachineCode part = *this;
  part.instructions.resize(first(name));
  return part;
}

std::string MachineCode::text() const {
  std::map<std::string, size_t> counts;
  for (const std::string &each : instructions)
    ++counts[each];
  std::string text = fmt::format(
      "{} instructions, {} registers:", instructions.size(), registers);
  for (const auto &[name, number] : counts)
    text += fmt::format(" {} {}", name, number);
  return text;
}

Result<MachineCode> readMachineCode(std::span<const std::byte> cubin,
                                    const std::string &entry) {
  auto at = [&](uint64_t offset, auto value) {
    if (offset + sizeof value <= cubin.size())
      std::memcpy(&value, cubin.data() + offset, sizeof value);
    return value;
  };
  const Cubin facts = readCubin(cubin);
  const auto known = facts.entries.find(entry);
  const auto header = at(0, Elf64_Ehdr{});
  auto section = [&](unsigned k) {
    return at(header.e_shoff + k * header.e_shentsize, Elf64_Shdr{});
  };
  const uint64_t names = section(header.e_shstrndx).sh_offset;
  for (unsigned k = 0; known != facts.entries.end() && k < header.e_shnum;
       ++k) {
    const Elf64_Shdr text = section(k);
    const auto *name =
        reinterpret_cast<const char *>(cubin.data()) + names + text.sh_name;
    if (".text." + entry != name)
      continue;
    MachineCode code;
    code.registers = known->second.registers;
    constexpr uint64_t size = 16; // of an instruction
    for (uint64_t o = 0; o + size <= text.sh_size; o += size) {
      std::string each = nameOf(at(text.sh_offset + o, uint64_t()),
                                at(text.sh_offset + o + 8, uint64_t()));
      if (each != "NOP")
        code.instructions.push_back(std::move(each));
    }
    return code;
  }
  return fail(ErrorKind::Invalid, "the cubin has no entry " + entry);
}

static Result<CudaText> textOf(const planner::KernelSpec &spec,
                               const planner::LaunchFacts &facts) {
  MGPU_TRY_ASSIGN(CudaKernel kernel,
                  emitCudaText(spec, {spec.name, "", spec.block, facts.maxGrid,
                                      facts.alignment, facts.unwritten,
                                      facts.steadyBytes}));
  CudaText text;
  text.name = kernel.name;
  text.image = std::move(kernel.image);
  MGPU_TRY_ASSIGN(text.space,
                  kernelSpaceOf(spec, facts.maxGrid, KernelTarget::Cuda));
  return text;
}

Result<std::vector<MachineCode>> machineCodeOf(const std::string &program,
                                               const std::string &config,
                                               bool awaits, size_t configured) {
  planner::Imported imported = planner::importText(program);
  if (!imported.program)
    return fail(ErrorKind::Invalid, imported.text());
  const planner::Dag &dag = imported.dag();
  const std::vector<planner::LaunchFacts> facts = planner::launchFacts(dag);
  std::vector<MachineCode> codes;
  for (size_t k = 0; k < dag.kernels.size(); ++k) {
    MGPU_TRY_ASSIGN(CudaText text, textOf(dag.kernels[k], facts[k]));
    MGPU_TRY_ASSIGN(
        KernelConfig asked,
        parseKernelConfig(k < configured ? config : "", text.space->defaults));
    MGPU_TRY(text.space->check(asked));
    MGPU_TRY_ASSIGN(auto object,
                    buildGpuKernel(text, asked, "sm_90", awaits, nullptr));
    MGPU_TRY_ASSIGN(KernelImage image, decodeImage(text.name, object));
    MGPU_TRY_ASSIGN(MachineCode code,
                    readMachineCode(image.bytes(), image.entry));
    const Dim3 grid = facts[k].maxGrid;
    code.blocks = uint64_t(grid.x) * grid.y * grid.z;
    code.threads = image.block.volume();
    codes.push_back(std::move(code));
  }
  return codes;
}

Result<std::vector<MachineCode>> codeOfAll(const std::string &program) {
  planner::Imported imported = planner::importText(program);
  if (!imported.program)
    return fail(ErrorKind::Invalid, imported.text());
  const planner::Dag &dag = imported.dag();
  const std::vector<planner::LaunchFacts> facts = planner::launchFacts(dag);
  std::vector<CudaText> texts;
  for (size_t k = 0; k < dag.kernels.size(); ++k) {
    MGPU_TRY_ASSIGN(CudaText text, textOf(dag.kernels[k], facts[k]));
    texts.push_back(std::move(text));
  }
  MGPU_TRY_ASSIGN(auto compiled, compileTexts(texts, "sm_90", nullptr, {}));
  std::vector<MachineCode> codes;
  for (size_t k = 0; k < texts.size(); ++k) {
    MGPU_TRY_ASSIGN(CompiledText one, std::move(compiled[k]));
    MGPU_TRY_ASSIGN(MachineCode code,
                    readMachineCode(one.program->cubin, texts[k].image.entry));
    codes.push_back(std::move(code));
  }
  return codes;
}

std::string programOn(const std::vector<std::string> &types,
                      const std::string &body) {
  std::string arguments, before, after;
  for (size_t k = 0; k < types.size(); ++k) {
    const std::string type = "memref<" + types[k] + ">";
    arguments += fmt::format("{}%h{}: {}", k ? ", " : "", k, type);
    before += fmt::format("  %b{0} = mgpu.alloc %d : !mgpu.device -> {1}\n"
                          "  mgpu.memcpy %b{0}, %h{0}, %d, %host : {1}, {1}, "
                          "!mgpu.device, !mgpu.device\n",
                          k, type);
    after += fmt::format("  mgpu.memcpy %h{0}, %b{0}, %host, %d : {1}, {1}, "
                         "!mgpu.device, !mgpu.device\n",
                         k, type);
  }
  return "mgpu.device_config @config #mgpu.device_config<numDevices = 1>\n"
         "#all = affine_map<(i, j) -> (i, j)>\n"
         "#rows = affine_map<(i, j) -> (i)>\n"
         "func.func @main(" +
         arguments +
         ") {\n"
         "  %cm1 = arith.constant -1 : index\n"
         "  %c0 = arith.constant 0 : index\n"
         "  %host = mgpu.get_device %cm1 : !mgpu.device\n"
         "  %d = mgpu.get_device %c0 : !mgpu.device\n" +
         before + body + after + "  return\n}\n";
}

} // namespace mgpu::kernels
