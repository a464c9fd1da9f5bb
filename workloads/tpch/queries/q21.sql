-- TPC-H Q21, suppliers who kept orders waiting
-- set nation = SAUDI ARABIA
select s_name, count(*) as numwait
from supplier
join lineitem late on late.l_suppkey = s_suppkey
join orders on o_orderkey = late.l_orderkey
join nation on n_nationkey = s_nationkey
where o_orderstatus = 'F'
  and late.l_receiptdate > late.l_commitdate
  and n_name = '${nation}'
  and exists (
    select 1 from lineitem other
    where other.l_orderkey = late.l_orderkey and other.l_suppkey <> late.l_suppkey
  )
  and not exists (
    select 1 from lineitem other
    where other.l_orderkey = late.l_orderkey
      and other.l_suppkey <> late.l_suppkey
      and other.l_receiptdate > other.l_commitdate
  )
group by s_name
order by numwait desc, s_name
limit 100
