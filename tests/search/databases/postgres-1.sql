CREATE TABLE IF NOT EXISTS tilewright_workload (
  hash text PRIMARY KEY, name text NOT NULL, script text NOT NULL, created timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS tilewright_record (
  id bigserial PRIMARY KEY,
  hash text NOT NULL REFERENCES tilewright_workload (hash),
  target text NOT NULL, trace text NOT NULL, seconds double precision[] NOT NULL,
  outcome text NOT NULL, error text NOT NULL, created timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS tilewright_record_of ON tilewright_record (hash, target);
INSERT INTO tilewright_workload (hash, name, script) VALUES ('78de8cb4831ac7a691cf4bade1e62653', 'scale', '# from tilewright.script import ir as I
# from tilewright.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(X: T.Buffer((64, 96), "float32"), Y: T.Buffer((64, 96), "float32")):
        T.func_attr({"global_symbol": "scale"})
        # with T.block("root"):
        for i, j in T.grid(64, 96):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(X[vi, vj])
                T.writes(Y[vi, vj])
                Y[vi, vj] = X[vi, vj] * T.float32(2.0)');
INSERT INTO tilewright_record (hash, target, trace, seconds, outcome, error)
  VALUES ('78de8cb4831ac7a691cf4bade1e62653', 'llvm -mcpu=znver3 -num-cores=1', '[[["GetBlock",[],["Y","main"],["b0"]],["GetLoops",["b0"],[],["l1","l2"]],["SamplePerfectTile",["l1"],[3,16],["v3","v4","v5"]],["Split",["l1","v3","v4","v5"],[true,false],["l6","l7","l8"]],["SamplePerfectTile",["l2"],[3,16],["v9","v10","v11"]],["Split",["l2","v9","v10","v11"],[true,false],["l12","l13","l14"]],["EnterPostproc",[],[],[]]],[[2,[8,2,4]],[4,[12,1,8]]]]', '{6e-07,5e-07,7e-07}', 'ok', '');
INSERT INTO tilewright_record (hash, target, trace, seconds, outcome, error)
  VALUES ('78de8cb4831ac7a691cf4bade1e62653', 'llvm -mcpu=znver3 -num-cores=1', '[[["GetBlock",[],["Y","main"],["b0"]],["GetLoops",["b0"],[],["l1","l2"]],["SamplePerfectTile",["l1"],[3,16],["v3","v4","v5"]],["Split",["l1","v3","v4","v5"],[true,false],["l6","l7","l8"]],["SamplePerfectTile",["l2"],[3,16],["v9","v10","v11"]],["Split",["l2","v9","v10","v11"],[true,false],["l12","l13","l14"]],["EnterPostproc",[],[],[]]],[[2,[8,4,2]],[4,[6,1,16]]]]', '{4e-07,3e-07,5e-07}', 'ok', '');
