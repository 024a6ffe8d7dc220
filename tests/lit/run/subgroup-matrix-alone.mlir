// RUN: mgpu-tune run %s --target host:1 --arg a=iota --arg b=iota --out c=%t.npy
// RUN: %python -c "import sys,struct; v=struct.unpack('<1024f',open(sys.argv[1],'rb').read()[-4096:]); print(*map(int,(v[0],v[15],v[16],v[31],v[32],v[1023])))" %t.npy | FileCheck %s

// The second subgroup alone multiplies: the right half of what
// subgroup-matrix.mlir gives.
// CHECK: 0 0 41600 43400 0 2194056

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
    %c1s = arith.constant 1 : index
    %in = arith.cmpi eq, %subgroup, %c1s : index
    scf.if %in {
    %x = gpu.subgroup_mma_load_matrix %da[%row, %zero] {leadDimension = 16 : index} : memref<32x16xf16> -> !gpu.mma_matrix<16x16xf16, "AOp">
    %y = gpu.subgroup_mma_load_matrix %db[%zero, %column] {leadDimension = 32 : index} : memref<16x32xf16> -> !gpu.mma_matrix<16x16xf16, "BOp">
    %held = gpu.subgroup_mma_constant_matrix %none : !gpu.mma_matrix<16x16xf32, "COp">
    %sum = gpu.subgroup_mma_compute %x, %y, %held : !gpu.mma_matrix<16x16xf16, "AOp">, !gpu.mma_matrix<16x16xf16, "BOp"> -> !gpu.mma_matrix<16x16xf32, "COp">
    gpu.subgroup_mma_store_matrix %sum, %dc[%row, %column] {leadDimension = 32 : index} : !gpu.mma_matrix<16x16xf32, "COp">, memref<32x32xf32>
    }
  }
  mgpu.memcpy %c, %dc, %host, %d : memref<32x32xf32>, memref<32x32xf32>, !mgpu.device, !mgpu.device
  return
}
