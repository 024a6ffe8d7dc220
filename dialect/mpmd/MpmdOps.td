// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_MPMD_MPMDOPS_TD
#define MGPU_DIALECT_MPMD_MPMDOPS_TD

include "dialect/mpmd/MpmdBase.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/LoopLikeInterface.td"

class Mpmd_Op<string mnemonic, list<Trait> traits = []>
    : Op<Mpmd_Dialect, mnemonic, traits>;

def Mpmd_MeshTensor : Type<
    CPred<"::llvm::isa<::mgpu::mpmd::MeshTensorType>($_self)">,
    "mesh tensor", "::mgpu::mpmd::MeshTensorType">;
def Mpmd_Tensor : AnyTypeOf<[AnyTensor, Mpmd_MeshTensor]>;
def Mpmd_TensorOrToken
    : Type<CPred<"::mgpu::mpmd::isTensorOrToken($_self)">, "tensor or token">;
// A fragment also takes and gives tokens.
def Mpmd_MeshTensorOrToken : AnyTypeOf<[Mpmd_MeshTensor, Type<
    CPred<"::mgpu::mpmd::isToken($_self)">, "token">]>;

//===----------------------------------------------------------------------===//
// Marks in programs over plain tensors
//===----------------------------------------------------------------------===//

// An operation with a body of its own values: `(%a) (%x: T) {..} : (T) -> T`.
class Mpmd_BodyOp<string mnemonic, list<Trait> traits = []>
    : Mpmd_Op<mnemonic, !listconcat([RecursiveMemoryEffects,
        RecursivelySpeculatable, SingleBlock,
        SingleBlockImplicitTerminator<"ReturnOp">], traits)> {
  let regions = (region SizedRegion<1>:$region);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

def Mpmd_NamedComputationOp
    : Mpmd_BodyOp<"named_computation", [IsolatedFromAbove]> {
  let summary = "A part of the program with a name";
  let description = [{
    Whoever plans the program says by the name on which mesh it runs.

    Constraints, by the label that ends the message about each:
    - (named_computation_c1) the body takes values of the operands' types;
    - (named_computation_c2) it returns values of the results' types.

    Example:
    ```mlir
    %1 = mpmd.named_computation<"layer"(1)> (%a) (%x: tensor<4xf32>) {
      %2 = stablehlo.negate %x : tensor<4xf32>
      mpmd.return %2 : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<Mpmd_TensorOrToken>:$tensors,
                       Mpmd_UserOriginAttr:$origin);
  let results = (outs Variadic<Mpmd_TensorOrToken>:$results);
  let extraClassDeclaration = [{
    ::llvm::StringRef getName() { return getOrigin().getUserName(); }
    int64_t getTransposeCount() { return getOrigin().getTransposeCount(); }
  }];
}

def Mpmd_NamedTensorOp
    : Mpmd_Op<"named_tensor", [Pure, SameOperandsAndResultType]> {
  let summary = "A tensor with a name";
  let description = [{
    Whoever plans the program says by the name on which mesh it is.
  }];
  let arguments = (ins AnyTensor:$tensor, StrAttr:$name);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = [{
    $tensor `name` `` `=` `` $name attr-dict `:` type($result)
  }];
}

def Mpmd_BroadcastOp
    : Mpmd_Op<"broadcast", [Pure, SameOperandsAndResultType]> {
  let summary = "A tensor that goes to each mesh that uses it";
  let arguments = (ins AnyTensor:$tensor);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "attr-dict $tensor `:` type($tensor)";
}

def Mpmd_ReduceOp : Mpmd_Op<"reduce", [Pure, SameOperandsAndResultType]> {
  let summary = "Tensors of several meshes combined, for each mesh that uses it";
  let description = [{
    Constraints, by the label that ends the message about each:
    - (reduce_c1) `none` combines nothing, and has one operand.

    Example:
    ```mlir
    %2 = mpmd.reduce<add> %0, %1
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyTensor>:$tensors,
                       Mpmd_ReductionAttr:$reduction);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = [{
    `` $reduction attr-dict $tensors `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Between plain tensors and tensors on a mesh
//===----------------------------------------------------------------------===//

def Mpmd_AssignOp : Mpmd_Op<"assign",
    [Pure, ParentOneOf<["::mlir::func::FuncOp", "ForOp"]>]> {
  let summary = "A tensor that gets on a mesh";
  let description = [{
    Constraints, by the label that ends the message about each:
    - (assign_c1) the result has the operand's type on the mesh, and each device
      has all of it.
  }];
  let arguments = (ins AnyTensor:$tensor, OptionalAttr<StrAttr>:$origin);
  let results = (outs Mpmd_MeshTensor:$result);
  let assemblyFormat = [{
    attr-dict $tensor `:` functional-type(operands, results)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$tensor,
                                 "::llvm::StringRef":$meshName,
                                 CArg<"::llvm::StringRef", "{}">:$origin)>];
  let hasVerifier = 1;
}

def Mpmd_UnassignOp : Mpmd_Op<"unassign",
    [Pure, ParentOneOf<["::mlir::func::FuncOp", "ForOp"]>]> {
  let summary = "A tensor on a mesh, as a plain one";
  let description = [{
    Constraints, by the label that ends the message about each:
    - (unassign_c1) the operand has the result's type on the mesh, and each
      device has all of it.
  }];
  let arguments = (ins Mpmd_MeshTensor:$tensor, OptionalAttr<StrAttr>:$origin);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = [{
    attr-dict $tensor `:` functional-type(operands, results)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$tensor,
                                 CArg<"::llvm::StringRef", "{}">:$origin)>];
  let hasVerifier = 1;
}

def Mpmd_TransferOp
    : Mpmd_Op<"transfer", [Pure, ParentOneOf<["::mlir::func::FuncOp"]>]> {
  let summary = "A tensor that goes to another mesh, sharding or memory";
  let description = [{
    Constraints, by the label that ends the message about each:
    - (transfer_c1) both have the same global type;
    - (transfer_c2) the memory is `"device"` or `"pinned_host"`;
    - (transfer_c3) the types say it, and no attribute `memory_kind`.
  }];
  let arguments = (ins Mpmd_MeshTensor:$tensor);
  let results = (outs Mpmd_MeshTensor:$result);
  let assemblyFormat = [{
    attr-dict $tensor `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Whether it stays on its mesh.
    bool isIntraMesh() {
      return getTensor().getType().getMeshName() == getType().getMeshName();
    }
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Work of a mesh
//===----------------------------------------------------------------------===//

def Mpmd_FragmentOp : Mpmd_BodyOp<"fragment",
    [IsolatedFromAbove, ParentOneOf<["::mlir::func::FuncOp", "ForOp"]>]> {
  let summary = "A part of the program that one mesh runs";
  let description = [{
    `origin` lists the named computations that it was made of, and
    `in_shardings` and `out_shardings` how the mesh's devices share the values
    of the body, where the types do not say it.

    Constraints, by the label that ends the message about each:
    - (fragment_c1) the function has a `topology`, and the mesh is one of it;
    - (fragment_c2) operands and results are on that mesh;
    - (fragment_c3) the body takes values of the operands' global types;
    - (fragment_c4) it returns values of the results' global types;
    - (fragment_c5) there are as many `in_shardings` as operands, and as many
      `out_shardings` as results;
    - (fragment_c6) each of these fits its value, as one in a type does;
    - (fragment_c7) a fragment with a stage has an origin.

    Example:
    ```mlir
    %1 = mpmd.fragment<mesh="m1", origin=["f"(1)], stage=2> (%a)
        {call_counter = 0 : ui32} (%x: tensor<4xf32>) {
      mpmd.return %x : tensor<4xf32>
    } : (!mpmd.mesh_tensor<"m1", tensor<4xf32>>)
        -> !mpmd.mesh_tensor<"m1", tensor<4xf32>>
    ```
  }];
  let arguments = (ins Variadic<Mpmd_MeshTensorOrToken>:$inputs,
      Mpmd_UserOrigins:$origin, StrAttr:$mesh_name,
      OptionalAttr<I64Attr>:$stage_id,
      OptionalAttr<Sdy_TensorShardingPerValueAttr>:$in_shardings,
      OptionalAttr<Sdy_TensorShardingPerValueAttr>:$out_shardings);
  let results = (outs Variadic<Mpmd_MeshTensorOrToken>:$results);
}

// A call of a function.
class Mpmd_CallOpBase<string mnemonic, list<Trait> traits>
    : Mpmd_Op<mnemonic, !listconcat([CallOpInterface,
        DeclareOpInterfaceMethods<SymbolUserOpInterface>], traits)> {
  let extraClassDeclaration = [{
    ::mlir::CallInterfaceCallable getCallableForCallee() {
      return (*this)->getAttrOfType<::mlir::SymbolRefAttr>("callee");
    }
    void setCalleeFromCallable(::mlir::CallInterfaceCallable callee) {
      (*this)->setAttr("callee", ::llvm::cast<::mlir::SymbolRefAttr>(callee));
    }
    ::mlir::Operation::operand_range getArgOperands() { return getTensors(); }
    ::mlir::MutableOperandRange getArgOperandsMutable() {
      return getTensorsMutable();
    }
    // Attributes of arguments and results are the callee's.
    ::mlir::ArrayAttr getArgAttrsAttr() { return {}; }
    ::mlir::ArrayAttr getResAttrsAttr() { return {}; }
    void setArgAttrsAttr(::mlir::ArrayAttr) {}
    void setResAttrsAttr(::mlir::ArrayAttr) {}
    ::mlir::Attribute removeArgAttrsAttr() { return {}; }
    ::mlir::Attribute removeResAttrsAttr() { return {}; }
  }];
}

def Mpmd_FragmentCallOp : Mpmd_CallOpBase<"fragment_call",
    [ParentOneOf<["::mlir::func::FuncOp"]>]> {
  let summary = "A function that one mesh runs";
  let description = [{
    The callee is a fragment's body. Its types are the global ones, its
    arguments and results say by `sdy.sharding` how devices share them, and its
    attribute `mesh_shape` is a mesh.

    Constraints, by the label that ends the message about each:
    - (fragment_call_c1) the callee is a function;
    - (fragment_call_c2) it takes and gives the operands' and results' global
      types;
    - (fragment_call_c3) the function has a `topology`, and the mesh is one of
      it;
    - (fragment_call_c4) operands and results are on that mesh;
    - (fragment_call_c5) the mesh is as the callee's `mesh_shape`.

    Example:
    ```mlir
    %2 = mpmd.fragment_call<mesh="m1", origin=["f"(1), "g"]> @f(%a, %b)
        : (!t, !t) -> !t
    ```
  }];
  let arguments = (ins Variadic<Mpmd_MeshTensorOrToken>:$tensors,
      Mpmd_UserOrigins:$origin, StrAttr:$mesh_name, FlatSymbolRefAttr:$callee);
  let results = (outs Variadic<Mpmd_MeshTensorOrToken>);
  let assemblyFormat = [{
    `` `<` `mesh` `` `=` `` $mesh_name `,` `origin` `` `=` ``
    custom<UserOrigins>($origin) `>` $callee `(` $tensors `)` attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Calls and loops
//===----------------------------------------------------------------------===//

def Mpmd_CallOp : Mpmd_CallOpBase<"call", []> {
  let summary = "A function of the same program";
  let description = [{
    `call_counter` says which of the calls it is: the number of a microbatch.

    Constraints, by the label that ends the message about each:
    - (call_c1) the callee is a function;
    - (call_c2) it takes and gives the operands' and results' types;
    - (call_c3) `call_counter` is of type `ui32`;
    - (call_c4) the call stands in a function or in `mpmd.for`;
    - (call_c5) a function with a `topology` that calls is the entry function;
    - (call_c6) a callee with a `topology` is private.

    Example:
    ```mlir
    %1 = mpmd.call @layer(%0) {call_counter = 0 : ui32}
        : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<Mpmd_Tensor>:$tensors,
                       FlatSymbolRefAttr:$callee);
  let results = (outs Variadic<Mpmd_Tensor>);
  let assemblyFormat = [{
    $callee `(` $tensors `)` attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Mpmd_ForOp : Mpmd_BodyOp<"for", [
    DeclareOpInterfaceMethods<LoopLikeOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "A body that runs a known number of times";
  let description = [{
    The body takes what the run before it returned, and the run's number from 0.
    `unroll_factor` says how many runs one round of the loop holds.

    Constraints, by the label that ends the message about each:
    - (for_c1) results have the operands' types;
    - (for_c2) the body takes values of these types, and an index: a tensor of
      rank 0 of a 32-bit integer;
    - (for_c3) it returns values of these types;
    - (for_c4) `iterations` is at least 1, and `unroll_factor` divides it;
    - (for_c5) operands are all on meshes, or none is.

    Example:
    ```mlir
    %1 = mpmd.for (%0) {iterations = 6 : ui32, unroll_factor = 3 : ui32}
        (%x: tensor<4xf32>, %index: tensor<ui32>) {
      %2 = stablehlo.add %x, %x : tensor<4xf32>
      mpmd.return %2 : tensor<4xf32>
    } : tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$tensors, UI32Attr:$iterations,
                       OptionalAttr<UI32Attr>:$unroll_factor);
  let results = (outs Variadic<AnyType>:$results);
  let extraClassDeclaration = [{
    /// The argument of the body that is the run's number.
    ::mlir::BlockArgument getIndexArg() {
      return getRegion().front().getArguments().back();
    }
  }];
}

def Mpmd_ReturnOp : Mpmd_Op<"return", [Pure, Terminator, ReturnLike]> {
  let summary = "What a body gives";
  let arguments = (ins Variadic<AnyType>:$results);
  let assemblyFormat = "attr-dict $results (`:` type($results)^)?";
  let builders = [OpBuilder<(ins), [{
    build($_builder, $_state, ::mlir::ValueRange());
  }]>];
}

#endif // MGPU_DIALECT_MPMD_MPMDOPS_TD
