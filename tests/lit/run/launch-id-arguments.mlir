// RUN: mgpu-tune run %s --target host:1 --out y=%t.npy
// RUN: %python -c "import sys,struct; b=open(sys.argv[1],'rb').read()[-384:]; v=struct.unpack('<96i',b); print(v == tuple(100000*e + sum(w*s for w,s in zip((1,10,100,1000,10000,0),(3,2,1,4,2,2))) for e in range(96)), v[5])" %t.npy | FileCheck %s

// The twelve ids and sizes as arguments of the body. Each of 3 x 2 blocks of
// 4 x 2 x 2 threads writes its own number and a sum that tells the sizes apart.
// CHECK: True 524123

mgpu.device_config @config #mgpu.device_config<numDevices = 1>

func.func @main(%y: memref<96xi32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %a = mgpu.alloc %d : !mgpu.device -> memref<96xi32>
  mgpu.launch %d grid (%c3, %c2) block (%c4, %c2, %c2) {
  ^bb0(%bx: index, %by: index, %bz: index, %tx: index, %ty: index, %tz: index,
       %gx: index, %gy: index, %gz: index, %nx: index, %ny: index, %nz: index):
    %i = affine.apply affine_map<(bx, by, tx, ty, tz) ->
        ((by * 3 + bx) * 16 + tz * 8 + ty * 4 + tx)>(%bx, %by, %tx, %ty, %tz)
    %v = affine.apply affine_map<(i)[gx, gy, gz, nx, ny] ->
        (i * 100000 + gx + gy * 10 + gz * 100 + nx * 1000 + ny * 10000)>
        (%i)[%gx, %gy, %gz, %nx, %ny]
    %w = arith.index_cast %v : index to i32
    memref.store %w, %a[%i] : memref<96xi32>
    mgpu.terminator
  }
  mgpu.memcpy %y, %a, %host, %d : memref<96xi32>, memref<96xi32>, !mgpu.device, !mgpu.device
  return
}
