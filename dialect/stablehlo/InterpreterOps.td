// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_STABLEHLO_INTERPRETEROPS_TD
#define MGPU_DIALECT_STABLEHLO_INTERPRETEROPS_TD

include "dialect/stablehlo/StablehloTypes.td"

def Interpreter_Dialect : Dialect {
  let name = "interpreter";
  let cppNamespace = "::mgpu::interpreter";
  let summary = "Programs that run beside each other, in programs that test "
                "themselves";
}

class Interpreter_Op<string mnemonic, list<Trait> traits = []>
    : Op<Interpreter_Dialect, mnemonic, traits>;

def Interpreter_RunParallelOp : Interpreter_Op<"run_parallel", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a function on each device of a grid";
  let description = [{
    `programs` has a list for each replica, and in it a function for each
    partition. Operands are those of the functions, one behind the other in row
    order, and so are the results.
  }];
  let arguments = (ins Variadic<Stablehlo_TensorOrToken>:$inputs,
                       OptionalAttr<ArrayAttr>:$infeed, ArrayAttr:$programs);
  let results = (outs Variadic<Stablehlo_TensorOrToken>);
}

def Interpreter_ProbeOp
    : Interpreter_Op<"probe", [SameOperandsAndResultType]> {
  let summary = "Saves its operand to a file, and returns it";
  let arguments = (ins Stablehlo_AnyTensor:$operand, StrAttr:$probe_id);
  let results = (outs Stablehlo_AnyTensor:$result);
  let assemblyFormat = [{
    $operand `,` `probe_id` `=` $probe_id attr-dict `:` type($result)
  }];
}

#endif // MGPU_DIALECT_STABLEHLO_INTERPRETEROPS_TD
