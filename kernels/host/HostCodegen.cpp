// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/HostCodegen.h"

#include "kernels/abi/HostKernelAbi.h"
#include "kernels/host/HostEmitter.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Target/LLVMIR/ModuleTranslation.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"

#include <memory>
#include <mutex>

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

} // namespace mgpu::kernels
