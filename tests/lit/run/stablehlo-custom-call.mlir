// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A call of a name that nobody knows is planned by what it touches; it runs
// once --custom gives it a kernel.
// RUN: mgpu-tune check %s --entry scaled 2>&1 | FileCheck %s --check-prefix=CHECK
// RUN: mgpu-tune plan %s --entry scaled --target sim:dgx-h200 --steps | FileCheck %s --check-prefix=PLAN
// RUN: mgpu-tune plan %s --entry scaled --cost scale=250.5 --target sim:dgx-h200 --explain 2>/dev/null | FileCheck %s --check-prefix=COST
// RUN: not mgpu-tune plan %s --entry scaled --cost scael=250 --target host:1 2>&1 | FileCheck %s --check-prefix=COSTNAME
// RUN: not mgpu-tune plan %s --entry scaled --cost scale=soon --target host:1 2>&1 | FileCheck %s --check-prefix=COSTUS
// RUN: not mgpu-tune run %s --entry scaled --random 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: not mgpu-tune bundle %s --entry scaled -o %t.mgpu 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: not mgpu-tune check %s --entry scaled --custom scael=%S/Inputs/scale.cu 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not mgpu-tune check %s --entry odd --custom 'my$op=%S/Inputs/scale.cu' 2>&1 | FileCheck %s --check-prefix=ENTRY
// RUN: not mgpu-tune check %s --entry scaled --custom scale=%S/Inputs/scale.cu:two 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not mgpu-tune check %s --entry scaled --custom scale=%S/Inputs/scale.cu:none 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: mgpu-tune check %s --entry factors 2>&1 | FileCheck %s --check-prefix=LIBRARY
// RUN: not mgpu-tune run %s --entry factors --random 2>&1 | FileCheck %s --check-prefix=FACTORS
// RUN: not mgpu-tune check %s --entry host 2>&1 | FileCheck %s --check-prefix=HOST
// RUN: not mgpu-tune check %s --entry nothing 2>&1 | FileCheck %s --check-prefix=NOTHING

// CHECK: stablehlo-custom-call.mlir:[[#@LINE+13]]:8: warning: nothing says what 'scale' computes: its time is assumed to be that of the bytes it touches, unless --cost says it, and it runs with --custom 'scale=FILE.cu:ENTRY' alone
// CHECK: ok: 1 device, 4 nodes, 3 dependencies, 2 kernels
// PLAN: scale
// COST: +250.500 {{.*}}"scale_kernel0_2"
// COSTNAME: --cost scael: no call of that name is of unknown meaning; there are: scale; did you mean 'scale'?
// COSTUS: --cost: 'soon' is no number of microseconds, 0 to 1e9
// REFUSED: error: {{.*}}stablehlo-custom-call.mlir:[[#@LINE+7]]:8: {{.*}}nothing says what the custom call 'scale' computes, so it can be planned and not run: give it a kernel by --custom 'scale=FILE.cu:ENTRY'
// NAME: --custom scael: the program has no such call; it calls scale, my$op, lapack_sgetrf_ffi, xla_python_cpu_callback, effect, ApproxTopK, log, columns; did you mean 'scale'?
// COUNT: stablehlo-custom-call.mlir:[[#@LINE+5]]:8: {{.*}}gives 2 arguments, but the kernel 'two' in '{{.*}}scale.cu' takes 3
// NONE: stablehlo-custom-call.mlir:[[#@LINE+4]]:8: {{.*}}names the kernel 'none', but '{{.*}}scale.cu' has none
func.func @scaled(%x: tensor<1000xf32>) -> tensor<1000xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<1000xf32>
  %a = stablehlo.add %x, %c : tensor<1000xf32>
  %y = stablehlo.custom_call @scale(%a) {api_version = 2 : i32, backend_config = "by=3"} : (tensor<1000xf32>) -> tensor<1000xf32>
  return %y : tensor<1000xf32>
}

func.func @odd(%x: tensor<8xf32>) -> tensor<8xf32> {
  // ENTRY: --custom my$op={{.*}}scale.cu: no function has the name 'my$op': say which one it is
  %y = stablehlo.custom_call @"my$op"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

func.func @factors(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // LIBRARY: ok: 1 device
  // FACTORS: 'lapack_sgetrf_ffi' is a factorisation of a library that this version does not have: compute it before
  %y:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%x) : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xi32>, tensor<i32>)
  return %y#0 : tensor<4x4xf32>
}

func.func @host(%x: tensor<4xf32>) -> tensor<4xf32> {
  // HOST: [[#@LINE+1]]:8: error: {{.*}}'xla_python_cpu_callback' calls back into the program that exported it; export it without
  %y = stablehlo.custom_call @xla_python_cpu_callback(%x) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

func.func @nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
  // NOTHING: [[#@LINE+1]]:3: error: {{.*}}'effect' gives nothing, so it is called for an effect that is not seen here
  stablehlo.custom_call @effect(%x) {has_side_effect = true} : (tensor<4xf32>) -> ()
  return %x : tensor<4xf32>
}

// A call may name a function, which nothing else needs.
// RUN: mgpu-tune check %s --entry compared 2>&1 | FileCheck %s --check-prefix=COMPARED
// COMPARED: ok: 1 device
func.func private @order(%a: tensor<f32>, %b: tensor<f32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func @compared(%x: tensor<8xf32>) -> tensor<2xf32> {
  %y = stablehlo.custom_call @ApproxTopK(%x) {called_computations = [@order]} : (tensor<8xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// Calls that differ in what only their library reads are two, and one that has
// an effect stays.
// RUN: mgpu-tune check %s --entry twice 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not mgpu-tune check %s --entry twice --custom scale=%S/Inputs/scale.cu 2>&1 | FileCheck %s --check-prefix=CONFIG
// TWICE: ok: 1 device, 6 nodes
func.func @twice(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = stablehlo.custom_call @scale(%x) {backend_config = "factor=2"} : (tensor<8xf32>) -> tensor<8xf32>
  // CONFIG: [[#@LINE+1]]:8: error: {{.*}}'scale' is called with several values of backend_config, which a kernel does not see, so --custom cannot be its kernel
  %b = stablehlo.custom_call @scale(%x) {backend_config = "factor=3"} : (tensor<8xf32>) -> tensor<8xf32>
  %c = stablehlo.custom_call @log(%x) {has_side_effect = true} : (tensor<8xf32>) -> tensor<8xf32>
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// RUN: not mgpu-tune check %s --entry columns --custom columns=%S/Inputs/scale.cu:scale 2>&1 | FileCheck %s --check-prefix=COLUMNS
func.func @columns(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // COLUMNS: [[#@LINE+1]]:8: error: {{.*}}'columns' lays tensors out in another order than row by row
  %a = stablehlo.custom_call @columns(%x) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %a : tensor<4x8xf32>
}

// RUN: not mgpu-tune check %s --entry columns --custom columns=:scale 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not mgpu-tune check %s --entry columns --custom Sharding=%S/Inputs/scale.cu:scale 2>&1 | FileCheck %s --check-prefix=OWN
// EMPTY: --custom columns=:scale: expected FILE.cu, FILE.cu:ENTRY, LIB.so:FUNCTION or registered
// OWN: --custom Sharding: a call of this name has a meaning of its own
