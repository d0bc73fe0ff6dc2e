BEGIN TRANSACTION;
CREATE TABLE finals (
  workload_id INTEGER NOT NULL REFERENCES workload (id),
  target_id INTEGER NOT NULL REFERENCES target (id),
  winner INTEGER NOT NULL REFERENCES record (id),
  seconds TEXT NOT NULL,
  median REAL NOT NULL,
  last_record INTEGER NOT NULL,
  created TEXT NOT NULL,
  PRIMARY KEY (workload_id, target_id)
) WITHOUT ROWID;
INSERT INTO "finals" VALUES(1,1,2,'[6.430181835612254e-07,5.754969716883462e-07,4.811393933557679e-07,4.885454583211068e-07,4.83509090069371e-07,4.836303009087163e-07,6.169090876496877e-07,6.516363624321071e-07,6.584363621765409e-07,6.368848434331911e-07,4.853878801275807e-07,4.86060603041992e-07,6.92381818777049e-07,4.840545443585142e-07,6.35733334947321e-07,6.653030306386592e-07,7.105939375557655e-07,7.136969681155416e-07,4.862424248130992e-07,4.818666639039293e-07,4.886727269463749e-07,4.831454520392458e-07,4.837515117480617e-07,4.87642423787761e-07,4.880666672375589e-07,4.896363613873042e-07,6.53036366918858e-07,6.777515161295675e-07,6.835818181350602e-07,6.359757566260117e-07,6.733212075866476e-07,6.451999952057094e-07,6.578303024677249e-07,6.489697019181524e-07]',6.26321211298504374864e-07,2,'2026-11-23T05:30:43Z');
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "meta" VALUES('refusals/78de8cb4831ac7a691cf4bade1e62653/llvm -mcpu=znver3 -num-cores=1','{}');
INSERT INTO "meta" VALUES('times','[["tune scale", {"preparing": 0.18882540499998868, "reference": 0.2545344000000114, "search": 0.20135675900019123, "finals": 0.13281709600050817}]]');
INSERT INTO "meta" VALUES('written/78de8cb4831ac7a691cf4bade1e62653/llvm -mcpu=znver3 -num-cores=1','4.912100030196598e-05');
CREATE TABLE record (
  id INTEGER PRIMARY KEY,
  workload_id INTEGER NOT NULL REFERENCES workload (id),
  target_id INTEGER NOT NULL REFERENCES target (id),
  session_id INTEGER REFERENCES session (id) ON DELETE SET NULL,
  seed INTEGER NOT NULL,
  round INTEGER NOT NULL,
  position INTEGER NOT NULL,
  trace TEXT NOT NULL,
  decisions TEXT NOT NULL,
  seconds TEXT NOT NULL,
  median REAL,
  outcome TEXT NOT NULL,
  error TEXT,
  verification TEXT NOT NULL,
  versions TEXT NOT NULL,
  created TEXT NOT NULL
);
INSERT INTO "record" VALUES(1,1,1,1,3,0,0,'[[["GetBlock",[],["Y","main"],["b0"]],["GetLoops",["b0"],[],["l1","l2"]],["SamplePerfectTile",["l1"],[3,16],["v3","v4","v5"]],["Split",["l1","v3","v4","v5"],[true,false],["l6","l7","l8"]],["SamplePerfectTile",["l2"],[3,16],["v9","v10","v11"]],["Split",["l2","v9","v10","v11"],[true,false],["l12","l13","l14"]],["EnterPostproc",[],[],[]]],[[2,[8,2,4]],[4,[12,1,8]]]]','[[2,[8,2,4]],[4,[12,1,8]]]','[5.856316914921278e-07,5.098389929606712e-07,5.565604287103979e-07,4.882590513575662e-07,4.877895509736163e-07,5.144960973333715e-07,5.506614633770546e-07,5.112121950177669e-07,4.884380488386718e-07,5.198034146238437e-07,5.453878049326992e-07,5.373195119496015e-07,5.269292683451345e-07,5.593117069709966e-07,5.084946341656444e-07]',5.19803414623843662188e-07,'ok',NULL,'{"tolerance": {"Y": {"relative":1.0728836059570312e-06,"spread":9.5367431640625e-07}}, "largest_share_of_allowed": 0, "program": "sampled"}','{"tilewright": "0.1.0", "machine": "x86_64"}','2026-11-23T05:30:43Z');
INSERT INTO "record" VALUES(2,1,1,1,3,0,1,'[[["GetBlock",[],["Y","main"],["b0"]],["GetLoops",["b0"],[],["l1","l2"]],["SamplePerfectTile",["l1"],[3,16],["v3","v4","v5"]],["Split",["l1","v3","v4","v5"],[true,false],["l6","l7","l8"]],["SamplePerfectTile",["l2"],[3,16],["v9","v10","v11"]],["Split",["l2","v9","v10","v11"],[true,false],["l12","l13","l14"]],["EnterPostproc",[],[],[]]],[[2,[8,4,2]],[4,[6,1,16]]]]','[[2,[8,4,2]],[4,[6,1,16]]]','[4.834399039037425e-07,4.809836538627749e-07,6.674754808080672e-07,6.637475962634198e-07,6.876240385841251e-07,7.001182692734941e-07,5.511240383034769e-07,6.171995188161907e-07,5.39780769223888e-07,5.1733028822827e-07,5.059822115072165e-07,6.368177887102669e-07,5.557673074026053e-07,4.811187501183248e-07,4.809884615042392e-07,4.803716347641266e-07,5.0160806940688e-07,4.885384243553237e-07,5.183539868366386e-07,6.06991834694177e-07]',5.2906737803026329947e-07,'ok',NULL,'{"tolerance": {"Y": {"relative":1.0728836059570312e-06,"spread":9.5367431640625e-07}}, "largest_share_of_allowed": 0, "program": "sampled"}','{"tilewright": "0.1.0", "machine": "x86_64"}','2026-11-23T05:30:43Z');
CREATE TABLE session (
  id INTEGER PRIMARY KEY,
  workload_id INTEGER NOT NULL REFERENCES workload (id),
  target_id INTEGER NOT NULL REFERENCES target (id),
  space BLOB NOT NULL CHECK (length(space) = 16),
  seed INTEGER NOT NULL,
  state TEXT NOT NULL,
  updated TEXT NOT NULL,
  UNIQUE (workload_id, target_id, space, seed)
);
INSERT INTO "session" VALUES(1,1,1,X'096BDCFE4380D8C41BB0305B3F5949A6',3,'{"earlier":0,"relatives":[]}','2026-11-23T05:30:43Z');
CREATE TABLE target (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
INSERT INTO "target" VALUES(1,'llvm -mcpu=znver3 -num-cores=1');
CREATE TABLE workload (
  id INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 16),
  name TEXT NOT NULL,
  script TEXT NOT NULL,
  created TEXT NOT NULL
, sizes TEXT NOT NULL DEFAULT '');
INSERT INTO "workload" VALUES(1,X'78DE8CB4831AC7A691CF4BADE1E62653','scale','# from tilewright.script import ir as I
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
                Y[vi, vj] = X[vi, vj] * T.float32(2.0)','2026-11-23T05:30:43Z','');
CREATE INDEX record_best ON record (workload_id, target_id, median) WHERE median IS NOT NULL;
CREATE UNIQUE INDEX record_trial ON record (session_id, position) WHERE session_id IS NOT NULL;
COMMIT;