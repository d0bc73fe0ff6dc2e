PRAGMA application_id = 0x546c5772;
PRAGMA user_version = 5;
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
INSERT INTO "finals" VALUES(1,1,2,'[3e-07,3e-07]',3.0e-07,2,'2026-11-23T05:30:43Z');
CREATE TABLE host (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE,
  processor TEXT AS (iif(json_valid(text), json_extract(text, '$.processor'), NULL)),
  machine TEXT AS (iif(json_valid(text), json_extract(text, '$.machine'), NULL)),
  cores INTEGER AS (iif(json_valid(text), json_extract(text, '$.cores'), NULL)),
  features TEXT AS (iif(json_valid(text), json_extract(text, '$.features'), NULL)),
  system TEXT AS (iif(json_valid(text), json_extract(text, '$.system'), NULL))
);
INSERT INTO "host" VALUES(1,'{"machine":"x86_64"}');
CREATE TABLE libraries (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE,
  tilewright TEXT AS (iif(json_valid(text), json_extract(text, '$.tilewright'), NULL)),
  llvm TEXT AS (iif(json_valid(text), json_extract(text, '$.llvm'), NULL)),
  python TEXT AS (iif(json_valid(text), json_extract(text, '$.python'), NULL)),
  numpy TEXT AS (iif(json_valid(text), json_extract(text, '$.numpy'), NULL)),
  xgboost TEXT AS (iif(json_valid(text), json_extract(text, '$.xgboost'), NULL))
);
INSERT INTO "libraries" VALUES(1,'{"tilewright":"0.1.0"}');
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
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
  created TEXT NOT NULL
, host_id INTEGER REFERENCES host (id), libraries_id INTEGER REFERENCES libraries (id), incumbent_seconds REAL NOT NULL DEFAULT 0, incumbent_reference REAL NOT NULL DEFAULT 0);
INSERT INTO "record" VALUES(1,1,1,1,3,0,0,'[[["GetBlock",[],["Y","main"],["b0"]],["GetLoops",["b0"],[],["l1","l2"]],["SamplePerfectTile",["l1"],[3,16],["v3","v4","v5"]],["Split",["l1","v3","v4","v5"],[true,false],["l6","l7","l8"]],["SamplePerfectTile",["l2"],[3,16],["v9","v10","v11"]],["Split",["l2","v9","v10","v11"],[true,false],["l12","l13","l14"]],["EnterPostproc",[],[],[]]],[[2,[8,2,4]],[4,[12,1,8]]]]','[[2,[8,2,4]],[4,[12,1,8]]]','[6e-07,5e-07,7e-07]',6.0e-07,'ok',NULL,'{"program": "sampled"}','2026-11-23T05:30:43Z',1,1,0.0,0.0);
INSERT INTO "record" VALUES(2,1,1,1,3,0,1,'[[["GetBlock",[],["Y","main"],["b0"]],["GetLoops",["b0"],[],["l1","l2"]],["SamplePerfectTile",["l1"],[3,16],["v3","v4","v5"]],["Split",["l1","v3","v4","v5"],[true,false],["l6","l7","l8"]],["SamplePerfectTile",["l2"],[3,16],["v9","v10","v11"]],["Split",["l2","v9","v10","v11"],[true,false],["l12","l13","l14"]],["EnterPostproc",[],[],[]]],[[2,[8,4,2]],[4,[6,1,16]]]]','[[2,[8,4,2]],[4,[6,1,16]]]','[4e-07,3e-07,5e-07]',4.0e-07,'ok',NULL,'{"program": "sampled"}','2026-11-23T05:30:43Z',1,1,0.0,0.0);
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
