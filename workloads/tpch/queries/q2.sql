-- TPC-H Q2, minimum cost supplier
-- set size = 15
-- set type = BRASS
-- set region = EUROPE
with offers as (
  select ps_partkey, ps_supplycost, s_acctbal, s_name, s_address, s_phone, s_comment, n_name
  from partsupp
  join supplier on s_suppkey = ps_suppkey
  join nation on n_nationkey = s_nationkey
  join region on r_regionkey = n_regionkey
  where r_name = '${region}'
),
cheapest as (
  select ps_partkey as partkey, min(ps_supplycost) as cost
  from offers
  group by ps_partkey
)
select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
from part
join offers on ps_partkey = p_partkey
join cheapest on partkey = p_partkey and cost = ps_supplycost
where p_size = ${size} and p_type like '%${type}'
order by s_acctbal desc, n_name, s_name, p_partkey
limit 100
