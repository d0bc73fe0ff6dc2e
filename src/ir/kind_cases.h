// `case` labels for the kinds of other sorts, so that a switch over kinds needs no `default` and the compiler names the
// places that a new kind concerns:
//
//   switch (node.kind()) {
//     case Kind::kFor: ...                 // every statement
// #define X TW_CASE_UNLESS_STMT
// #include "ir/kinds.def"
// #undef X
//       ...                                // all other kinds
//   }
#pragma once

#define TW_CASE_OF(name) case Kind::k##name:

#define TW_CASE_UNLESS_EXPR(name, sort, ...) TW_UNLESS_EXPR_##sort(name)
#define TW_UNLESS_EXPR_Expr(name)
#define TW_UNLESS_EXPR_Stmt(name) case Kind::k##name:
#define TW_UNLESS_EXPR_Type(name) case Kind::k##name:
#define TW_UNLESS_EXPR_Func(name) case Kind::k##name:
#define TW_UNLESS_EXPR_Aux(name) case Kind::k##name:

#define TW_CASE_UNLESS_STMT(name, sort, ...) TW_UNLESS_STMT_##sort(name)
#define TW_UNLESS_STMT_Expr(name) case Kind::k##name:
#define TW_UNLESS_STMT_Stmt(name)
#define TW_UNLESS_STMT_Type(name) case Kind::k##name:
#define TW_UNLESS_STMT_Func(name) case Kind::k##name:
#define TW_UNLESS_STMT_Aux(name) case Kind::k##name:

#define TW_CASE_OF_EXPR(name, sort, ...) TW_OF_EXPR_##sort(name)
#define TW_OF_EXPR_Expr(name) case Kind::k##name:
#define TW_OF_EXPR_Stmt(name)
#define TW_OF_EXPR_Type(name)
#define TW_OF_EXPR_Func(name)
#define TW_OF_EXPR_Aux(name)

#define TW_CASE_OF_STMT(name, sort, ...) TW_OF_STMT_##sort(name)
#define TW_OF_STMT_Expr(name)
#define TW_OF_STMT_Stmt(name) case Kind::k##name:
#define TW_OF_STMT_Type(name)
#define TW_OF_STMT_Func(name)
#define TW_OF_STMT_Aux(name)
