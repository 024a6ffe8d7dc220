// REQUIRES: nvrtc
// RUN: mgpu-tune run %s --target host:1 --arg a=iota --arg b=iota --out c=%t.npy
// RUN: %python -c "import sys,struct; v=struct.unpack('<1024f',open(sys.argv[1],'rb').read()[-4096:]); print(*map(int,(v[0],v[1],v[32],v[1023])))" %t.npy | FileCheck %s
// RUN: cd %{root}
// RUN: mgpu-tune kernels tests/lit/run/subgroup-matrix.mlir --json --emit %t.texts | FileCheck %s --check-prefix=JSON
// RUN: diff %{root}/tests/golden/subgroup_matrix.cu %t.texts/main_kernel0.cu
// RUN: %{exits} 1 mgpu-tune kernels %s --arch sm_75 | FileCheck %s --check-prefix=OLD
// RUN: sed 's/%%c64)/%%c48)/' %s > %t.mlir
// RUN: %{exits} 5 mgpu-tune run %t.mlir --target host:1 | FileCheck %s --check-prefix=THREADS
// RUN: sed 's/16x16xf16, "BOp"/16x32xf16, "BOp"/; s/16x16xf32, "COp"/16x32xf32, "COp"/' %s > %t.mlir
// RUN: %{exits} 5 mgpu-tune run %t.mlir --target host:1 | FileCheck %s --check-prefix=SHAPE
// RUN: %{exits} 5 mgpu-tune kernels %t.mlir | FileCheck %s --check-prefix=SHAPE

// CHECK: 39680 39800 101120 2194056
// JSON: "flops": 32768.0
// JSON: "name": "main_kernel0"
// JSON: "reason": "keeps its block: uses gpu.subgroup_id (line
// JSON: "spill_bytes": 0
// OLD: subgroup-matrix.mlir({{[0-9]+}}): {{.*}}gpu.subgroup_mma_compute needs the tensor cores of sm_80 or later
// THREADS: 'gpu.subgroup_mma_load_matrix' op needs whole subgroups of 32 threads, and a block here has 48 threads
// SHAPE: has a matrix of type '!gpu.mma_matrix<16x32xf32, "COp">', which is not supported: products are m16n16, {{.*}}; this matrix is 16x32

mgpu.device_config @config #mgpu.device_config<numDevices = 1>

// Two blocks of two subgroups; each subgroup makes a quarter of c = a * b.
func.func @main(%a: memref<32x16xf16>, %b: memref<16x32xf16>, %c: memref<32x32xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c48 = arith.constant 48 : index
  %c64 = arith.constant 64 : index
  %c1 = arith.constant 1 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %da = mgpu.alloc %d : !mgpu.device -> memref<32x16xf16>
  %db = mgpu.alloc %d : !mgpu.device -> memref<16x32xf16>
  %dc = mgpu.alloc %d : !mgpu.device -> memref<32x32xf32>
  mgpu.memcpy %da, %a, %d, %host : memref<32x16xf16>, memref<32x16xf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %db, %b, %d, %host : memref<16x32xf16>, memref<16x32xf16>, !mgpu.device, !mgpu.device
  mgpu.launch %d grid(%c2) block(%c64) {
    %zero = arith.constant 0 : index
    %n = arith.constant 16 : index
    %none = arith.constant 0.0 : f32
    %block = gpu.block_id x
    %subgroup = gpu.subgroup_id : index
    %row = arith.muli %block, %n : index
    %column = arith.muli %subgroup, %n : index
    %x = gpu.subgroup_mma_load_matrix %da[%row, %zero] {leadDimension = 16 : index} : memref<32x16xf16> -> !gpu.mma_matrix<16x16xf16, "AOp">
    %y = gpu.subgroup_mma_load_matrix %db[%zero, %column] {leadDimension = 32 : index} : memref<16x32xf16> -> !gpu.mma_matrix<16x16xf16, "BOp">
    %held = gpu.subgroup_mma_constant_matrix %none : !gpu.mma_matrix<16x16xf32, "COp">
    %sum = gpu.subgroup_mma_compute %x, %y, %held : !gpu.mma_matrix<16x16xf16, "AOp">, !gpu.mma_matrix<16x16xf16, "BOp"> -> !gpu.mma_matrix<16x16xf32, "COp">
    gpu.subgroup_mma_store_matrix %sum, %dc[%row, %column] {leadDimension = 32 : index} : !gpu.mma_matrix<16x16xf32, "COp">, memref<32x32xf32>
  }
  mgpu.memcpy %c, %dc, %host, %d : memref<32x32xf32>, memref<32x32xf32>, !mgpu.device, !mgpu.device
  return
}
