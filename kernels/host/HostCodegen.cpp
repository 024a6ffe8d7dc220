// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/HostCodegen.h"

#include "kernels/abi/HostKernelAbi.h"
#include "kernels/host/HostEmitter.h"
#include "support/FileIO.h"

#include "lld/Common/CommonLinkerContext.h"
#include "lld/Common/Driver.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Target/LLVMIR/ModuleTranslation.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <system_error>
#include <thread>

LLD_HAS_DRIVER(elf);

namespace mgpu::kernels {

namespace {

/// LLVM's names of the processor and its features.
struct Processor {
  std::string name, features;
};

Result<Processor> processorOf(const std::string &cpu) {
  if (cpu == "native") {
    llvm::SubtargetFeatures features;
    for (const auto &[feature, has] : llvm::sys::getHostCPUFeatures())
      features.AddFeature(feature, has);
    return Processor{llvm::sys::getHostCPUName().str(), features.getString()};
  }
  if (cpu == "x86-64-v2" || cpu == "x86-64-v3" || cpu == "x86-64-v4")
    return Processor{cpu, ""};
  return fail(ErrorKind::Usage,
              "unknown host CPU level '" + cpu +
                  "'; use native, x86-64-v2, x86-64-v3 or x86-64-v4");
}

Result<std::unique_ptr<llvm::TargetMachine>>
makeTargetMachine(const std::string &cpu) {
  static std::once_flag initialised;
  std::call_once(initialised, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser(); // for the bytes of a stop
  });
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  std::string message;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return fail(ErrorKind::Absent,
                "LLVM cannot generate code for this machine: " + message);
  MGPU_TRY_ASSIGN(const Processor processor, processorOf(cpu));
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, processor.name, processor.features, options, llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return fail(ErrorKind::Absent,
                "LLVM cannot generate code for CPU '" + processor.name + "'");
  return machine;
}

void optimise(llvm::Module &module, llvm::TargetMachine &machine,
              const HostCodeOptions &options) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  tuning.LoopInterleaving = true;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  // Addresses come in descriptors, of which marks need them.
  llvm::ModulePassManager early;
  early.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::EarlyCSEPass()));
  early.run(module, modules);
  markLoops(module, options);
  modules.clear();
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, modules);
}

} // namespace

Result<std::string> hostTargetId(const std::string &cpu) {
  MGPU_TRY_ASSIGN(const Processor processor, processorOf(cpu));
  return processor.name + " " + processor.features +
         " lld " LLVM_VERSION_STRING;
}

Result<llvm::SmallVector<char, 0>> emitObject(mlir::ModuleOp module,
                                              const HostCodeOptions &options) {
  MGPU_TRY_ASSIGN(std::unique_ptr<llvm::TargetMachine> machine,
                  makeTargetMachine(options.cpu));
  llvm::LLVMContext context;
  // A loop that stays scalar is not news for the user.
  context.setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo *, void *) {});
  std::unique_ptr<llvm::Module> code =
      mlir::translateModuleToLLVMIR(module, context, "kernel");
  if (!code)
    return fail(ErrorKind::Internal,
                "the lowered kernel could not be translated to LLVM IR");
  code->setTargetTriple(machine->getTargetTriple());
  code->setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : *code) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine->getTargetCPU());
    function.addFnAttr("target-features", machine->getTargetFeatureString());
    function.addFnAttr("prefer-vector-width",
                       std::to_string(options.vectorBits));
    function.addFnAttr(llvm::Attribute::NoUnwind);
    // A stack that is too small ends the process; no page of it is jumped over.
    function.addFnAttr("probe-stack", "inline-asm");
    if (function.getName() != hostKernelEntryName)
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  optimise(*code, *machine, options);
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emission;
  if (machine->addPassesToEmitFile(emission, stream, nullptr,
                                   llvm::CodeGenFileType::ObjectFile))
    return fail(ErrorKind::Internal, "LLVM cannot write an object file here");
  emission.run(*code);
  return object;
}

// Kernels are linked by lld in this process and in memory. lld has one state
// for all of a process, so one link is made at a time.

namespace {

/// The runtime resolves these from the process; anything else is ours to
/// refuse here rather than at load.
bool isKnownSymbol(llvm::StringRef name) {
  static constexpr llvm::StringLiteral others[] = {
      "printf", "puts",    "putchar",
      "malloc", "free",    "memcpy",
      "memset", "memmove", "_GLOBAL_OFFSET_TABLE_"};
  if (llvm::is_contained(others, name))
    return true;
  static constexpr llvm::StringLiteral math[] = {
      "acos",    "acosh", "asin",      "asinh",     "atan",  "atan2",
      "atanh",   "cbrt",  "ceil",      "cos",       "cosh",  "erf",
      "erfc",    "exp",   "exp2",      "exp10",     "expm1", "fabs",
      "floor",   "fma",   "fmax",      "fmin",      "fmod",  "ldexp",
      "log",     "log10", "log1p",     "log2",      "pow",   "rint",
      "round",   "sin",   "sincos",    "sinh",      "sqrt",  "tan",
      "tanh",    "trunc", "roundeven", "nearbyint", "modf",  "fmaximum",
      "fminimum"};
  return llvm::is_contained(math, name) ||
         (name.consume_back("f") && llvm::is_contained(math, name));
}

Result<void> checkSymbols(const llvm::SmallVectorImpl<char> &object) {
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(
      llvm::StringRef(object.data(), object.size()), "kernel.o"));
  if (!file)
    return fail(ErrorKind::Internal, "the object file of a kernel is broken: " +
                                         llvm::toString(file.takeError()));
  for (const llvm::object::SymbolRef &symbol : (*file)->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (!flags || !name) {
      if (!flags)
        llvm::consumeError(flags.takeError());
      if (!name)
        llvm::consumeError(name.takeError());
      continue;
    }
    if ((*flags & llvm::object::SymbolRef::SF_Undefined) && !name->empty() &&
        !isKnownSymbol(*name))
      return fail(ErrorKind::Unsupported,
                  "the kernel needs the library function '" + name->str() +
                      "', which the host target does not provide at this CPU "
                      "level; compile for a higher one or avoid the operation");
  }
  return {};
}

/// Reads a pipe until it is empty and `isWritten` is set. There may be no end
/// of it: a child that another thread has forked may have its other side, too.
std::vector<std::byte> drain(const Descriptor &pipe,
                             const Descriptor &isWritten) {
  std::vector<std::byte> bytes;
  std::byte part[1 << 14];
  for (;;) {
    pollfd ready[] = {{pipe.get(), POLLIN, 0}, {isWritten.get(), POLLIN, 0}};
    if (poll(ready, 2, -1) < 0)
      continue;
    if (!(ready[0].revents & POLLIN))
      return bytes;
    const ssize_t got = read(pipe.get(), part, sizeof part);
    if (got > 0)
      bytes.insert(bytes.end(), part, part + got);
  }
}

/// Runs lld. Its messages are the error.
Result<void> runLinker(const std::string &input, const std::string &output) {
  const char *arguments[] = {
      "ld.lld",      "-shared",         "--hash-style=gnu",
      "-s",          "--build-id=none", "-z",
      "noexecstack", "--threads=1",     "--no-mmap-output-file",
      "-o",          output.c_str(),    input.c_str()};
  std::string said;
  llvm::raw_string_ostream stream(said);
  const bool isLinked = lld::elf::link(arguments, stream, stream,
                                       /*exitEarly=*/false,
                                       /*disableOutput=*/false);
  lld::CommonLinkerContext::destroy();
  if (!isLinked)
    return fail(ErrorKind::Internal, "lld could not link a kernel: " + said);
  return {};
}

} // namespace

Result<std::vector<std::byte>>
linkSharedObject(const llvm::SmallVectorImpl<char> &object) {
  MGPU_TRY(checkSymbols(object));
  const Descriptor input(memfd_create("kernel.o", MFD_CLOEXEC));
  int ends[] = {-1, -1};
  const bool isPiped = pipe2(ends, O_CLOEXEC) == 0;
  const Descriptor from(ends[0]), to(ends[1]);
  const Descriptor isWritten(eventfd(0, EFD_CLOEXEC));
  const bool isOpen = isPiped && input.isOpen() && isWritten.isOpen();
  const int code =
      isOpen ? writeFully(input.get(), std::as_bytes(std::span(object)))
             : errno;
  if (code != 0)
    return fail(ErrorKind::Absent,
                std::string("a kernel cannot be put into memory to be linked "
                            "(") +
                    std::strerror(code) +
                    "): raise the limits on memory or open files");
  static std::mutex oneAtATime;
  const std::lock_guard<std::mutex> lock(oneAtATime);
  std::vector<std::byte> bytes;
  std::thread reader;
  try {
    reader = std::thread([&] { bytes = drain(from, isWritten); });
  } catch (const std::system_error &error) {
    return fail(ErrorKind::Absent,
                std::string("a kernel cannot be linked, as there is no thread "
                            "to read it: ") +
                    error.what());
  }
  const Result<void> linked = runLinker(input.path(), to.path());
  eventfd_write(isWritten.get(), 1);
  reader.join();
  MGPU_TRY(linked);
  if (bytes.empty())
    return fail(ErrorKind::Internal, "lld linked a kernel into nothing");
  return bytes;
}

} // namespace mgpu::kernels
